import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { Registry } from '../hosting/registries/registry.ts'
import { type TestBerth, testBerth } from '../support/berth.ts'

/** Package managers that the machine does not have, called on a server. */

const SAYS = `console.log(JSON.stringify([__filename, process.env.npm_config_registry ?? null, ...process.argv.slice(2)])); process.exit(7)`
const registry = new Registry()
for (const version of ['9.1.0', '9.2.0', '10.15.0'])
  registry.publish({ name: 'pnpm', version, files: { 'package/bin/pnpm.cjs': SAYS } })
const ASKS = `require('https').request({ hostname: 'registry.yarnpkg.com', path: '/pnpm/9.1.0' }, (response) => {
  const { authorized } = response.socket
  let text = ''
  response.on('data', (data) => (text += data)).on('end', () => console.log(authorized, JSON.parse(text).version))
}).end()`
registry.publish({ name: 'yarn', version: '1.0.0', files: { 'package/bin/yarn.js': ASKS } })
const MAKES = `const made = new (require('module'))(__filename, module)
made.filename = __filename
console.log(typeof made.require('fs').readFileSync)`
registry.publish({ name: 'npm', version: '9.1.0', files: { 'package/bin/npm-cli.js': MAKES } })
registry.publish({ name: '@yarnpkg/cli-dist', version: '3.0.0', files: { 'package/bin/yarn.js': SAYS } })

let berth: TestBerth
beforeAll(async () => {
  berth = await testBerth({ flags: { 'npm-registry': registry.url } })
})
afterAll(async () => {
  await berth[Symbol.asyncDispose]()
  await registry[Symbol.asyncDispose]()
})

/** Calls the one of berth's tools, whatever the machine has, in a project below the directory of a package.json. */
async function call(
  program: string,
  manifest: object,
  serverId?: string,
  files: Record<string, string> = {},
) {
  const id = serverId ?? (await berth.server())
  const all = { 'package.json': JSON.stringify(manifest), ...files }
  const written = Object.entries(all).map(([name, text]) => `printf %s '${text}' > ${name}`)
  const command = `mkdir -p a/below && cd a && ${written.join(' && ')} && cd below && "\${PATH##*:}/${program}" one 'two three'`
  return berth.exec(id, command)
}

const hashOf = async (name: string, version: string): Promise<string> => {
  const bytes = await (await fetch(registry.dist(name, version).tarball)).bytes()
  return new Bun.CryptoHasher('sha512').update(bytes).digest('hex')
}

describe('a package manager is the version that packageManager names,', () => {
  test('with its arguments and its exit code, and uses the relay', async () => {
    const { stdout, stderr, exitCode } = await call('pnpm', { packageManager: 'pnpm@9.1.0' })
    expect({ stderr, exitCode }).toEqual({ stderr: '', exitCode: 7 })
    const [path, used, ...given] = JSON.parse(stdout)
    expect(path).toMatch(/\/programs\/[0-9a-f]{64}\/package\/bin\/pnpm\.cjs$/)
    expect(used).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/-\/\w{43}\/npm\/$/)
    expect(given).toEqual(['one', 'two three'])
  })

  test('checked against its hash', async () => {
    const hash = await hashOf('pnpm', '9.2.0')
    const right = await call('pnpm', { packageManager: `pnpm@9.2.0+sha512.${hash}` })
    expect(right.exitCode).toBe(7)
    const wrong = await call('pnpm', { packageManager: `pnpm@9.2.0+sha512.${hash.replaceAll('a', 'b')}` })
    expect(wrong.exitCode).toBe(69)
    expect(wrong.stderr).toMatch(
      /^pnpm: pnpm 9\.2\.0, which \S+package\.json names, .*does not have the hash/,
    )
  })

  test('and Yarn 1, which takes no registry with a credential, gets the public one through the relay', async () => {
    const { stdout, stderr } = await call('yarn', { packageManager: 'yarn@1.0.0' })
    expect({ stdout, stderr }).toMatchObject({ stdout: 'true 9.1.0\n' })
  })

  test('and npm finds what "npm init" calls of a module, also with Bun as node', async () => {
    const manifest = `echo '{"packageManager":"npm@9.1.0"}' >package.json`
    const run = `${manifest}; PATH="\${PATH##*:}:$PATH" npm`
    expect(await berth.exec(await berth.server(), run)).toMatchObject({ stdout: 'function\n', stderr: '' })
  })

  test('of the package that Yarn has for it', async () => {
    const { stdout } = await call('yarn', { packageManager: 'yarn@3.0.0' })
    expect(JSON.parse(stdout)[0]).toMatch(/package\/bin\/yarn\.js$/)
  })
})

test('what npm and Bun install for all projects is on PATH, in the home directory', async () => {
  registry.publish({ name: 'greets' })
  const id = await berth.server()
  const install = async (command: string): Promise<string> =>
    (await berth.exec(id, `${command} >&2 && command -v greets; cd ~ && rm -rf .local .bun`)).stdout
  expect(await install('npm install -g greets')).toEndWith('/.local/bin/greets\n')
  expect(await install(`"\${PATH##*:}/bun" add -g greets`)).toEndWith('/.bun/bin/greets\n')
})

test('one that no project names is the version that berth comes with, and no other of that number', async () => {
  const { stderr, exitCode } = await call('pnpm', {})
  expect(exitCode).toBe(69)
  expect(stderr).toContain('pnpm-10.15.0.tgz of the registry is not what berth comes with the hash of')
  // A lock file says which versions can read it.
  const old = await call('pnpm', {}, undefined, { 'pnpm-lock.yaml': 'lockfileVersion: 5.4\n' })
  expect(old.stderr).toMatch(/^pnpm: pnpm 7, which \S+pnpm-lock\.yaml names, is not installed/)
})

test('what one server has called is there for another, read-only, without the registry', async () => {
  const manifest = { packageManager: 'pnpm@9.1.0' }
  await call('pnpm', manifest)
  registry.intercept = () => new Response(null, { status: 503 })
  const id = await berth.server()
  const { stdout, exitCode } = await call('pnpm', manifest, id)
  expect(exitCode).toBe(7)
  // Nothing of it is written into the workspace.
  expect((await berth.exec(id, 'ls -A ~')).stdout).toBe('a\n')
  const [path] = JSON.parse(stdout)
  if (berth.info.isolation !== 'none') {
    const changed = await berth.exec(id, `echo poison > '${path}'; echo poison > '${path}.more'`)
    expect(changed.exitCode).not.toBe(0)
  }
  const missing = await call('pnpm', { packageManager: 'pnpm@9.0.1' })
  expect(missing).toMatchObject({ exitCode: 69, stdout: '' })
  expect(missing.stderr).toMatch(
    /^pnpm: pnpm 9\.0\.1, which \S+ names, is not installed, and berth cannot fetch it: .*503.* Connect this machine to the network once, or install pnpm on it\.\n$/,
  )
  registry.intercept = () => null
})
