/*
 * The only file that knows the terminal: it shows the canvas by ncurses, which sends what has changed, and turns what
 * is typed into keys. The terminal is restored on every way out: a return, exit(), a signal that ends, a crash.
 */
#include "base/terminal.h"
#include "base/clock.h"
#include "screen/screen.h"

#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#define NCURSES_WIDECHAR 1
#include <curses.h>
#include <term.h>
#undef columns /* a capability, to term.h */

/* --- the way out --- */

static volatile sig_atomic_t asked_to_end, is_on;
static struct termios was;
static char way_out[512]; /* what the terminal is sent: colours off, cursor on, the other screen */

static void restore(void)
{
	if (!is_on)
		return;
	is_on = 0;
	endwin();
}

/* Of a crash: nothing but what a signal handler may call. */
static void on_crash(int number)
{
	if (is_on) {
		(void)!write(STDOUT_FILENO, way_out, strlen(way_out));
		tcsetattr(STDIN_FILENO, TCSANOW, &was);
	}
	signal(number, SIG_DFL);
	raise(number);
}

static void on_end(int number)
{
	asked_to_end = number;
}

static void take_signals(void)
{
	static const int ends[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT },
			 crashes[] = { SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL };
	struct sigaction end = { .sa_handler = on_end }, crash = { .sa_handler = on_crash };

	for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++)
		sigaction(ends[i], &end, NULL);
	for (size_t i = 0; i < sizeof(crashes) / sizeof(*crashes); i++)
		sigaction(crashes[i], &crash, NULL);
	signal(SIGPIPE, SIG_IGN);
}

static void add_way_out(const char *capability)
{
	const char *s = tigetstr(capability);

	if (s && s != (char *)-1 && strlen(way_out) + strlen(s) < sizeof(way_out))
		strcat(way_out, s);
}

/* --- styles --- */

static attr_t styles[N_STYLES];

static attr_t colour(short number, short fg, short bg)
{
	init_pair(number, fg, bg);
	return COLOR_PAIR(number);
}

static void make_styles(void)
{
	bool coloured = has_colors() && terminal_takes_colour(STDOUT_FILENO);

	styles[STYLE_TITLE] = A_REVERSE;
	styles[STYLE_HEADING] = A_BOLD;
	styles[STYLE_SORTED] = A_BOLD | A_UNDERLINE;
	styles[STYLE_CURSOR] = A_REVERSE;
	styles[STYLE_MATCH] = A_UNDERLINE;
	styles[STYLE_KEY] = A_BOLD;
	styles[STYLE_WARN] = A_BOLD;
	for (int i = STYLE_FLAME_USER; i <= STYLE_FLAME_OTHER2; i++)
		styles[i] = i % 2 == STYLE_FLAME_USER % 2 ? A_REVERSE : A_NORMAL;
	if (!coloured)
		return;
	start_color();
	use_default_colors();
	styles[STYLE_TITLE] = colour(1, COLOR_BLACK, COLOR_GREEN);
	styles[STYLE_HEADING] = colour(2, COLOR_CYAN, -1) | A_BOLD;
	styles[STYLE_SORTED] = colour(2, COLOR_CYAN, -1) | A_BOLD | A_UNDERLINE;
	styles[STYLE_CURSOR] = colour(3, COLOR_BLACK, COLOR_CYAN);
	styles[STYLE_DIM] = A_DIM;
	styles[STYLE_MATCH] = colour(4, COLOR_YELLOW, -1) | A_BOLD;
	styles[STYLE_WARN] = colour(4, COLOR_YELLOW, -1) | A_BOLD;
	styles[STYLE_KEY] = colour(2, COLOR_CYAN, -1) | A_BOLD;
	if (COLORS >= 256) {
		static const short shades[] = { 214, 208, 110, 74, 114, 71, 250, 246 };

		for (int i = 0; i < 8; i++)
			styles[STYLE_FLAME_USER + i] = colour((short)(10 + i), 16, shades[i]);
		return;
	}
	styles[STYLE_FLAME_USER] = colour(10, COLOR_BLACK, COLOR_YELLOW);
	styles[STYLE_FLAME_USER2] = colour(11, COLOR_BLACK, COLOR_RED);
	styles[STYLE_FLAME_KERNEL] = colour(12, COLOR_BLACK, COLOR_BLUE);
	styles[STYLE_FLAME_KERNEL2] = colour(13, COLOR_BLACK, COLOR_CYAN);
	styles[STYLE_FLAME_LANG] = colour(14, COLOR_BLACK, COLOR_GREEN);
	styles[STYLE_FLAME_LANG2] = colour(13, COLOR_BLACK, COLOR_CYAN);
	styles[STYLE_FLAME_OTHER] = colour(15, COLOR_BLACK, COLOR_WHITE);
	styles[STYLE_FLAME_OTHER2] = colour(16, COLOR_WHITE, COLOR_BLACK);
}

/* --- showing --- */

static void show_row(const struct canvas *c, int y)
{
	const struct cell *row = c->cells + (size_t)y * (size_t)c->columns;

	for (int x = 0; x < c->columns; x++) {
		wchar_t text[2] = { (wchar_t)row[x].c, 0 };
		cchar_t out;

		if (!row[x].c)
			continue; /* covered by the wide one before it */
		setcchar(&out, text, styles[row[x].style] & ~A_COLOR,
			 (short)PAIR_NUMBER(styles[row[x].style]), NULL);
		mvadd_wch(y, x, &out);
	}
}

static int show(struct screen *s)
{
	int r = screen_draw(s, LINES, COLS);

	if (r < 0)
		return r;
	if (s->redraw)
		clearok(stdscr, TRUE);
	s->redraw = false;
	for (int y = 0; y < s->canvas.rows; y++)
		show_row(&s->canvas, y);
	move(LINES - 1, COLS - 1);
	refresh();
	return 0;
}

/* --- typing --- */

static uint32_t special(int code)
{
	static const struct {
		int code;
		uint32_t key;
	} keys[] = {
		{ KEY_UP, KEY_MOVE_UP },     { KEY_DOWN, KEY_MOVE_DOWN },
		{ KEY_LEFT, KEY_MOVE_LEFT }, { KEY_RIGHT, KEY_MOVE_RIGHT },
		{ KEY_PPAGE, KEY_PAGE_UP },  { KEY_NPAGE, KEY_PAGE_DOWN },
		{ KEY_HOME, KEY_FIRST },     { KEY_END, KEY_LAST },
		{ KEY_ENTER, KEY_RETURN },   { KEY_BACKSPACE, KEY_ERASE },
		{ KEY_RESIZE, KEY_SIZE },    { KEY_F(1), KEY_F_1 },
		{ KEY_F(3), KEY_F_3 },       { KEY_F(4), KEY_F_4 },
		{ KEY_F(6), KEY_F_6 },       { KEY_F(10), KEY_F_10 },
	};

	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
		if (keys[i].code == code)
			return keys[i].key;
	return KEY_NONE;
}

static uint32_t plain(wint_t c)
{
	return c == '\r' || c == '\n' ? KEY_RETURN
	       : c == 27              ? KEY_ESCAPE
	       : c == 127 || c == 8   ? KEY_ERASE
				      : c;
}

static void take_mouse(struct screen *s)
{
	MEVENT m;

	if (getmouse(&m) != OK)
		return;
	if (m.bstate & BUTTON4_PRESSED)
		screen_mouse(s, KEY_WHEEL_UP, m.y, m.x);
	else if (m.bstate & BUTTON5_PRESSED)
		screen_mouse(s, KEY_WHEEL_DOWN, m.y, m.x);
	else if (m.bstate & BUTTON1_DOUBLE_CLICKED)
		screen_mouse(s, KEY_DOUBLE_CLICK, m.y, m.x);
	else if (m.bstate & (BUTTON1_CLICKED | BUTTON1_PRESSED))
		screen_mouse(s, KEY_CLICK, m.y, m.x);
}

/* All that is there. False: the terminal is gone. */
static bool take_keys(struct screen *s)
{
	wint_t c;
	int r;

	while (!s->end && (r = get_wch(&c)) != ERR) {
		if (r == KEY_CODE_YES && (int)c == KEY_MOUSE)
			take_mouse(s);
		else if (r == KEY_CODE_YES && (int)c == KEY_RESIZE)
			s->redraw = true;
		else
			screen_key(s, r == KEY_CODE_YES ? special((int)c) : plain(c));
	}
	return true;
}

/* Ctrl-Z: the shell has the terminal until we are continued. */
static void suspend(struct screen *s)
{
	s->suspend = false;
	restore();
	raise(SIGTSTP);
	is_on = 1;
	s->redraw = true;
	refresh();
}

/* --- the loop --- */

enum { FIRST_VIEW = 1 }; /* of the descriptors; before it, the terminal's */

static int wait_ms(const struct screen *s)
{
	const struct view *v = screen_top(s);
	uint64_t due = v->ops->due_ns ? v->ops->due_ns(v) : UINT64_MAX, now = now_ns();
	uint64_t most = now + 1000000000; /* the clock in the first line */

	if (s->message_until_ns > now && s->message_until_ns < most)
		most = s->message_until_ns;
	if (due > most)
		due = most;
	return due > now ? (int)((due - now) / 1000000 + 1) : 0;
}

static void tick_views(struct screen *s, const struct pollfd *fds)
{
	uint32_t n = s->n_views;

	for (uint32_t i = 0; i < n && n == s->n_views; i++) {
		struct view *v = s->views[i];
		bool due = i + 1 == n && v->ops->due_ns && now_ns() >= v->ops->due_ns(v);

		if (v->ops->tick && (due || fds[FIRST_VIEW + i].revents))
			v->ops->tick(v, s);
	}
}

static void loop(struct screen *s)
{
	while (!s->end && !asked_to_end) {
		struct pollfd fds[FIRST_VIEW + SCREEN_VIEWS] = { { .fd = STDIN_FILENO,
								   .events = POLLIN } };

		if (s->suspend)
			suspend(s);
		if (show(s) < 0)
			break;
		for (uint32_t i = 0; i < s->n_views; i++) {
			const struct view *v = s->views[i];

			fds[FIRST_VIEW + i] =
				(struct pollfd){ .fd = v->ops->fd ? v->ops->fd(v) : -1,
						 .events = POLLIN };
		}
		if (poll(fds, FIRST_VIEW + s->n_views, wait_ms(s)) < 0 && errno != EINTR)
			break;
		if (fds[0].revents & (POLLHUP | POLLERR | POLLNVAL))
			break; /* the terminal is gone */
		tick_views(s, fds);
		take_keys(s); /* also without input: a change of size arrives here */
	}
}

int screen_run(struct screen *s, struct err *e)
{
	int error = 0;

	setlocale(LC_CTYPE, "");
	s->canvas.ascii = strcmp(nl_langinfo(CODESET), "UTF-8") != 0;
	if (setupterm(NULL, STDOUT_FILENO, &error) != OK)
		return err_set(
			e, -ENOTTY,
			"the terminal type \"%.32s\" (TERM) is not known here; memscope top --batch needs none",
			getenv("TERM") ? getenv("TERM") : "");
	if (!tigetstr("cup") || tigetstr("cup") == (char *)-1)
		return err_set(
			e, -ENOTTY,
			"the terminal \"%.32s\" (TERM) cannot move its cursor; memscope top --batch prints text",
			getenv("TERM") ? getenv("TERM") : "");
	tcgetattr(STDIN_FILENO, &was);
	add_way_out("sgr0");
	add_way_out("cnorm");
	add_way_out("rmcup");
	add_way_out("rmkx");
	set_escdelay(25);
	initscr();
	is_on = 1;
	atexit(restore);
	take_signals();
	raw();
	noecho();
	nonl();
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	curs_set(0);
	mousemask(BUTTON1_PRESSED | BUTTON1_CLICKED | BUTTON1_DOUBLE_CLICKED | BUTTON4_PRESSED |
			  BUTTON5_PRESSED,
		  NULL);
	mouseinterval(200);
	make_styles();
	loop(s);
	restore();
	return asked_to_end ? err_set(e, -EINTR, "%s", strsignal(asked_to_end)) : 0;
}
