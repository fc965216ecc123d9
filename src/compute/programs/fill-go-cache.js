// Runs in a server, by berth's own Bun, before Go compiles: GO SUBCOMMAND [ARGUMENT...]. Fills the server's cache with Go's
// standard library, which berth has compiled in a sandbox of its own. Whatever fails here, Go compiles for itself.
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

const [go, subcommand, ...rest] = process.argv.slice(2)
const { BERTH_PACKAGES_URL, BERTH_PACKAGES_TOKEN, FROM, GOCACHE } = process.env
/** The file in the cache that says that this was done. */
const mark = join(GOCACHE, '.berth')
const run = (...given) => {
  const { status, stdout, stderr } = spawnSync(go, given, { cwd: FROM, maxBuffer: 2 ** 28 })
  return { works: status === 0, text: `${stdout}${stderr}` }
}

/** Matches what makes other files of the same sources, beside cgo and -trimpath, in options and in variables. */
const OTHER_OPTIONS = /(?:^|\s)--?(?:a|race|msan|asan|gcflags|asmflags|toolexec|compiler)\b/
const OTHER_VARIABLES = /^(?:GO(?:OS|ARCH|ROOT|EXPERIMENT|FIPS140|386|AMD64|ARM|ARM64)|CC|CXX|CGO_.*FLAGS)$/

async function fill() {
  // Says what would be compiled, and fails where the program cannot be built anyway.
  const planned = run(subcommand, '-n', ...rest)
  if (!planned.works) return
  mkdirSync(GOCACHE, { recursive: true })
  writeFileSync(mark, '')
  if (!/ -std /.test(planned.text)) return
  const [root, cgo, flags] = run('env', 'GOROOT', 'CGO_ENABLED', 'GOFLAGS').text.split('\n')
  const options = `${flags} ${rest.join(' ')}`
  const others = Object.keys(process.env).some((name) => OTHER_VARIABLES.test(name) && process.env[name])
  if (others || OTHER_OPTIONS.test(options)) return
  const query = new URLSearchParams({
    program: join(root, 'bin/go'),
    cgo,
    trimpath: /(?:^|\s)--?trimpath\b/.test(options) ? '1' : '0',
    // Less than that is compiled sooner here than the whole library there.
    compile: / -p net\/http /.test(planned.text) ? '1' : '0',
  })
  const response = await fetch(`${BERTH_PACKAGES_URL}-/${BERTH_PACKAGES_TOKEN}/programs/go?${query}`)
  if (!response.ok) return
  const archive = join(dirname(import.meta.dir), (await response.json()).path)
  // As of today and as this user's, since Go drops what was not used for days.
  spawnSync('tar', ['-xmof', archive, '-C', GOCACHE])
}

try {
  if (!existsSync(mark)) await fill()
} catch {
  // berth stops, or its relay is out of reach.
}
