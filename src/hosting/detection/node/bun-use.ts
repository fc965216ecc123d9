/** Largest JavaScript that is parsed, in characters: a hostile one of this size takes Bun's parser less than 0.2 s. */
const MAX_PARSED = 128 * 1024

/** Matches text that may use Bun, also in strings and comments. */
const MAYBE = /\bBun\b|['"`]bun[:'"`]/

/** Takes the place of the global `Bun` where it is used. No code has it. */
const MARK = '__berth_global_bun__'

/** Matches calls that import Bun's modules, in code without comments. */
const REQUIRES = /\brequire\(\s*['"]bun[:'"]|\bglobalThis\.Bun\b/

/**
 * Reports whether JavaScript needs Bun: whether it imports `bun` or `bun:…`, or uses the global `Bun`. What strings and comments
 * say does not count. Text that is no JavaScript, or too long to be parsed, is only searched.
 */
export function usesBun(code: string): boolean {
  if (!MAYBE.test(code)) return false
  if (code.length > MAX_PARSED) return true
  try {
    // As JavaScript: with the types of TypeScript some texts of a few KiB take the parser seconds.
    const transpiler = new Bun.Transpiler({ loader: 'jsx', define: { Bun: MARK } })
    const { imports } = transpiler.scan(code)
    if (imports.some(({ path }) => path === 'bun' || path.startsWith('bun:'))) return true
    const plain = transpiler.transformSync(code)
    return plain.includes(MARK) || REQUIRES.test(plain)
  } catch {
    return true
  }
}
