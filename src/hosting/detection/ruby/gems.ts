import type { SourceDirectory } from '../source.ts'
import { anyVersion, bySpecifiers, needsOf, pinned, readPin, type ToolNeed } from '../versions.ts'

/** The gems of a directory's Gemfile. */
export interface Gems {
  /** `Gemfile` or `gems.rb`. */
  readonly file: string
  /** Reports whether an app has a gem in production, as far as Gemfile and lock can be read. */
  has(name: string): boolean
  readonly install: string
  readonly variables: Readonly<Record<string, string>>
  readonly tools: readonly ToolNeed[]
}

/** Takes gems that the machine has if they are all that is needed; others go below the app. */
const INSTALL =
  'bundle check >/dev/null 2>&1 || { bundle config set --local path vendor/bundle && bundle install --jobs 4; }'

/** Reads a directory's Gemfile and lock; null for none. */
export async function readGems(directory: SourceDirectory): Promise<Gems | null> {
  const file = directory.first(['Gemfile', 'gems.rb'])
  if (file === null) return null
  const text = await directory.textOf(file)
  const lock = await directory.text(file === 'Gemfile' ? 'Gemfile.lock' : 'gems.locked')
  const { names, left } = gemsIn(text)
  // Those of the lock that a group left out asks for are not told apart from others.
  const locked = [...(lock ?? '').matchAll(/^ {4}([\w.-]+) \(/gm)].flatMap(([, name = '']) =>
    left.has(name) ? [] : [name],
  )
  const own = /^\s*gemspec\b/m.test(text)
    ? directory.files.filter((path) => /^[^/]+\.gemspec$/.test(path))
    : []
  const specified = (await Promise.all(own.map((path) => directory.textOf(path)))).flatMap((spec) =>
    [...spec.matchAll(/\.add_(?:runtime_)?dependency\s*\(?\s*["']([^"']+)["']/g)].map(
      ([, name = '']) => name,
    ),
  )
  const all = new Set([...names, ...specified, ...locked])
  return {
    file,
    has: (name) => all.has(name),
    install: INSTALL,
    variables: {
      BUNDLE_WITHOUT: 'development:test',
      // A lock is obeyed, not rewritten.
      ...(lock === null ? {} : { BUNDLE_FROZEN: 'true' }),
    },
    tools: [...(await rubyTools(directory, text, file)), anyVersion('bundle')],
  }
}

/** Returns the needs of Ruby: what the Gemfile states, and pins. */
export async function rubyTools(directory: SourceDirectory, gemfile = '', file = ''): Promise<ToolNeed[]> {
  const line = /^\s*ruby\s*\(?\s*((?:["'][^"']+["']\s*,?\s*)+)/m.exec(gemfile)?.[1] ?? ''
  const stated = [...line.matchAll(/["']([^"']+)["']/g)].map(([, one = '']) => one.trim())
  const wanted = stated.join(', ')
  const by = directory.pathOf(file)
  // Bundler refuses every other version.
  const need = stated.some((one) => /^[~<>=!]/.test(one))
    ? { ...bySpecifiers('ruby', stated.map((one) => one.replace(/^~>/, '~=')).join(','), by), wanted }
    : { ...pinned('ruby', wanted, by), isStrict: true }
  return needsOf('ruby', [stated.length === 0 ? null : need, await readPin(directory, 'ruby')])
}

/** Returns the gems of a Gemfile, and those that groups for development and tests alone name. */
function gemsIn(text: string): { names: Set<string>; left: Set<string> } {
  const names = new Set<string>()
  const left = new Set<string>()
  /** Whether each open block is one of groups that are left out. */
  const blocks: boolean[] = []
  for (const line of text.split(/\r?\n/)) {
    const code = line.replace(/(?:^|\s)#.*$/, '')
    const gem = /^\s*gem\s*\(?\s*["']([^"']+)["'](.*)$/.exec(code)
    const isLeft =
      blocks.includes(true) || /\bgroups?(?::|\s*=>)\s*(?:\[\s*)?:(?:development|test)\b/.test(gem?.[2] ?? '')
    if (gem?.[1] !== undefined) (isLeft ? left : names).add(gem[1])
    if (/\bdo\b|^\s*(?:if|unless|case)\b/.test(code)) {
      const groups = /^\s*group\s+(.*?)\bdo\b/.exec(code)?.[1] ?? ''
      blocks.push(groups !== '' && !/:(?!development|test)\w/.test(groups))
    } else if (/^\s*end\b/.test(code)) blocks.pop()
  }
  for (const name of names) left.delete(name)
  return { names, left }
}
