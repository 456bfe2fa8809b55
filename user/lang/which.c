#include "lang/which.h"
#include "lang/go.h"

static const char *const runtimes[MS_N_LANGS] = {
	[MS_LANG_PYTHON] = "CPython", [MS_LANG_HOTSPOT] = "Java", [MS_LANG_GHC] = "GHC",
	[MS_LANG_V8] = "node",        [MS_LANG_RUBY] = "Ruby",    [MS_LANG_PHP] = "PHP",
	[MS_LANG_PERL] = "Perl",
};

const char *lang_runtime_in(struct elf_file *elf)
{
	_cleanup_(lang_image_freep) struct lang_image *image = NULL;

	if (lang_image_read(elf, &image, NULL) == 0 && lang_image_lang(image) != MS_LANG_NONE)
		return runtimes[lang_image_lang(image)];
	return go_version(elf) ? "Go" : NULL;
}
