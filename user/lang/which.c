#include "lang/which.h"
#include "lang/image_cell.h"

static const char *const runtimes[MS_N_LANGS] = {
	[MS_LANG_PYTHON] = "CPython", [MS_LANG_HOTSPOT] = "Java", [MS_LANG_GHC] = "GHC",
	[MS_LANG_V8] = "node",        [MS_LANG_RUBY] = "Ruby",    [MS_LANG_PHP] = "PHP",
	[MS_LANG_PERL] = "Perl",
};

const char *lang_runtime_in(int fd, const char *name)
{
	_cleanup_(lang_image_freep) struct lang_image *image = NULL;
	bool is_go;

	if (lang_image_ask(fd, name, &image, &is_go, NULL) == 0 &&
	    lang_image_lang(image) != MS_LANG_NONE)
		return runtimes[lang_image_lang(image)];
	return is_go ? "Go" : NULL;
}
