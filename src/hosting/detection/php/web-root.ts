import { shellQuote } from '../../../runtime/shell-quote.ts'
import type { SourceDirectory } from '../source.ts'

/** Usual directories of the files that a PHP app shows, the most specific first. */
export const WEB_ROOTS = ['public', 'web', 'webroot', 'public_html', 'htdocs', 'www', 'html', 'docroot']

/** Matches the programs of Heroku that serve PHP, with a Procfile's options and directory. */
export const HEROKU = /^(?:\S*\/)?(?:heroku-)?(?:heroku-)?(?:php-(?:apache2|nginx)|hhvm-\w+)\b(.*)$/

/** Options of these programs that take a value. */
const WITH_VALUE = /^-[CFciIlpt]$/

/** Returns the directory that a Procfile's command serves; null if it is none of Heroku's programs for PHP. */
export function herokuRoot(command: string): string | null {
  const rest = HEROKU.exec(command.trim())?.[1]
  if (rest === undefined) return null
  const words = rest.split(/\s+/).filter(Boolean)
  const named = words.filter(
    (word, index) => !word.startsWith('-') && !WITH_VALUE.test(words[index - 1] ?? ''),
  )
  return (named.at(-1) ?? '').replace(/^\.?\/+|\/+$/g, '')
}

/** Returns the directory, relative to a source's, that `php -S` serves in a command; null if it does not call it. */
export function servedRoot(command: string): string | null {
  if (!/\bphp\b.*\s-S\s*\S/.test(command)) return null
  return (/\s-t[\s=]*["']?([^\s"';&|]+)/.exec(command)?.[1] ?? '').replace(/^\.?\/+|\/+$/g, '')
}

/** Returns the first usual directory with an index page in PHP; empty for the directory itself, null for none. */
export function usualRoot(directory: SourceDirectory): string | null {
  const roots = [...WEB_ROOTS, '', 'src/public', 'app/public', 'src']
  return roots.find((root) => directory.has(root === '' ? 'index.php' : `${root}/index.php`)) ?? null
}

/** Matches what makes Apache give paths without a file to the index page. */
const REWRITES = /^\s*(?:RewriteRule\s.*index\.php|FallbackResource\s)/m

/** Reports whether the index page of a directory answers paths without a file. */
export const isFrontController = async (directory: SourceDirectory, root: string): Promise<boolean> =>
  REWRITES.test((await directory.text(`${root}/.htaccess`)) ?? '')

/** Hides files whose name begins with a dot, as `php -S` by itself does not. */
const HIDES =
  '<?php $__path = rawurldecode(strtok($_SERVER["REQUEST_URI"], "?")); if (preg_match("~/\\.(?!well-known/)~", $__path)) { http_response_code(404); return true; }'

/** Gives paths without a file to the index page, also those with a dot, which `php -S` by itself refuses. */
const FRONT =
  '$__root = $_SERVER["DOCUMENT_ROOT"]; if ($__path === "/" || is_file($__root . $__path) || glob($__root . rtrim($__path, "/") . "/index.[ph][ht][pm]*") || (preg_match("~^(/.*?\\.php)/~", $__path, $__script) && is_file($__root . $__script[1]))) return false; $_SERVER["SCRIPT_NAME"] = $_SERVER["PHP_SELF"] = "/index.php"; $_SERVER["SCRIPT_FILENAME"] = "$__root/index.php"; chdir($__root); require "$__root/index.php";'

/** Returns the command that serves a directory. */
export function serve(root: string, isFront: boolean): string {
  const router = `${HIDES} ${isFront ? FRONT : 'return false;'}`
  const folder = shellQuote([root === '' ? '.' : root])
  return `printf %s ${shellQuote([router])} > "$TMPDIR/router.php" && exec php -S "$HOST:$PORT" -t ${folder} "$TMPDIR/router.php"`
}
