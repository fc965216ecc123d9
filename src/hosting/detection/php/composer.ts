import { fieldsOf } from '../../../runtime/is-object.ts'
import type { Machine } from '../machine.ts'
import type { SourceDirectory } from '../source.ts'
import { anyVersion, bySpecifiers, type ToolNeed } from '../versions.ts'

/** What a directory's composer.json says. */
export interface Composer {
  /** The names of what it requires. */
  readonly requires: readonly string[]
  /** The command that installs its packages; null if there are none. */
  readonly install: string | null
  readonly scripts: Readonly<Record<string, unknown>>
  readonly tools: readonly ToolNeed[]
}

/** Leaves packages that are in the source without a lock as they are. */
const INSTALL =
  '{ [ -e vendor/autoload.php ] && [ ! -e composer.lock ]; } || composer install --no-dev --no-interaction --no-progress --optimize-autoloader'

/**
 * Reads composer.json and what of the machine it needs; null for none.
 *
 * @throws AppError for a mistake in it
 */
export async function readComposer(directory: SourceDirectory, machine: Machine): Promise<Composer | null> {
  const found = await directory.json('composer.json')
  if (found === null) return null
  const { scripts, autoload, require: required } = fieldsOf(found)
  const requires = fieldsOf(required)
  const names = Object.keys(requires)
  // Names without a slash are those of PHP itself.
  const installs = autoload !== undefined || names.some((name) => name.includes('/'))
  const file = directory.pathOf('composer.json')
  const extensions = names.flatMap((name) => /^ext-(.+)$/.exec(name)?.[1] ?? [])
  return {
    requires: names,
    install: installs ? INSTALL : null,
    scripts: fieldsOf(scripts),
    tools: [
      typeof requires.php === 'string' ? phpVersion(requires.php, file) : anyVersion('php'),
      ...(installs ? [anyVersion('composer')] : []),
      ...(await missingExtensions(extensions, file, machine)),
    ],
  }
}

/** Returns the need of a version in a constraint of Composer, such as `^8.1 || >=7.4 <8`. */
export function phpVersion(wanted: string, file: string): ToolNeed {
  const specifiers = wanted
    .replace(/@\w+/g, '')
    .replace(/\s+-\s+/g, ',<=')
    .replace(/(^|[|,\s])(\d[\w.]*),<=/g, '$1>=$2,<=')
    .replace(/([<>=!~^])\s+/g, '$1')
    .trim()
    .split(/\s*\|\|?\s*/)
    .map((all) =>
      all
        .split(/[\s,]+/)
        // Its `~` lets the last number grow, as `~=` of Python does, and `~8` is `^8`.
        .map((one) => (/^~\d+$/.test(one) ? `^${one.slice(1)}` : one.replace(/^~(?!=)/, '~=')))
        .join(','),
    )
  return { ...bySpecifiers('php', specifiers.join('||'), file), wanted }
}

/**
 * Returns a need for each of these extensions that the machine's PHP does not have: a tool named `php-EXTENSION`, which
 * nobody finds.
 */
export async function missingExtensions(
  extensions: readonly string[],
  file: string,
  machine: Machine,
): Promise<ToolNeed[]> {
  if (extensions.length === 0) return []
  const listed = await machine.check('php', ['-m'])
  if (!listed.works || listed.output === undefined) return []
  const loaded = new Set(listed.output.split('\n').map((line) => plain(line)))
  return extensions
    .filter((name) => !loaded.has(plain(name)))
    .map((name) => anyVersion(`php-${plain(name)}`, file))
}

/** Returns a name as both lists can be compared: `Zend OPcache` is `ext-zend-opcache`. */
const plain = (name: string): string => name.trim().toLowerCase().replaceAll(/\s/g, '-')
