/** Operating systems and processors that names of Go files may end with. */
const SYSTEMS = new Set(
  'aix android darwin dragonfly freebsd illumos ios js linux netbsd openbsd plan9 solaris wasip1 windows'.split(
    ' ',
  ),
)
const PROCESSORS = new Set(
  '386 amd64 arm arm64 loong64 mips mips64 mips64le mipsle ppc64 ppc64le riscv64 s390x wasm'.split(' '),
)

const SYSTEM = process.platform === 'darwin' ? 'darwin' : 'linux'
const PROCESSOR = process.arch === 'x64' ? 'amd64' : process.arch

/** Tags that hold without `-tags`. */
const TAGS = new Set([SYSTEM, PROCESSOR, 'unix', 'gc', 'cgo'])

/**
 * Reports whether `go build` takes a file in on this machine: by its name (`_test`, `_windows`, `_arm64`) and its
 * constraint (`//go:build ignore`).
 */
export function isBuilt(path: string, text: string): boolean {
  const name = path.slice(path.lastIndexOf('/') + 1)
  if (/^[._]|_test\.go$/.test(name)) return false
  const [last = '', before = ''] = name.replace(/\.go$/, '').split('_').slice(1).reverse()
  if (PROCESSORS.has(last) && last !== PROCESSOR) return false
  const system = PROCESSORS.has(last) ? before : last
  if (SYSTEMS.has(system) && system !== SYSTEM) return false
  const head = text.slice(0, Math.max(0, text.search(/^package\b/m)))
  const constraint = /^\/\/go:build\s+(.*)$/m.exec(head)?.[1]
  if (constraint !== undefined) return holds(constraint)
  return !/^\/\/\s*\+build\s.*\bignore\b/m.test(head)
}

/** Evaluates an expression of tags with `!`, `&&`, `||` and parentheses. One that is not valid holds, for Go to report it. */
export function holds(constraint: string): boolean {
  const tokens = constraint.match(/[\w.]+|&&|\|\||[!()]/g) ?? []
  let at = 0
  const unit = (): boolean => {
    const token = tokens[at]
    at += 1
    if (token === '!') return !unit()
    if (token !== '(') return token === undefined || TAGS.has(token) || /^go1\.\d+$/.test(token)
    const value = either()
    at += 1
    return value
  }
  const both = (): boolean => {
    let value = unit()
    while (tokens[at] === '&&') {
      at += 1
      value = unit() && value
    }
    return value
  }
  const either = (): boolean => {
    let value = both()
    while (tokens[at] === '||') {
      at += 1
      value = both() || value
    }
    return value
  }
  return either()
}
