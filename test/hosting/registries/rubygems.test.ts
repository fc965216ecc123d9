import { expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { NO_SETTINGS, World } from './world.ts'

/** Bundler and `gem` themselves, with a registry on loopback that speaks the compact index. */

const PATH = '/usr/local/bin:/usr/bin:/bin'
const GEM = Bun.which('gem', { PATH })
const hasRuby = GEM !== null && Bun.which('bundle', { PATH }) !== null
const withRuby = hasRuby ? test : test.skip
if (!hasRuby) console.error('SKIP RubyGems: there is no bundle on this machine')

const hash = (algorithm: 'md5' | 'sha256', bytes: Uint8Array | string): string =>
  new Bun.CryptoHasher(algorithm).update(bytes).digest('hex')

/** A registry with the gem `tiny`, which `require` and a program of its name make print `hello`. */
class GemRegistry implements Disposable {
  readonly asked: string[] = []
  readonly #directory = mkdtempSync(join(tmpdir(), 'berth-gems-'))
  readonly #server: Bun.Server<undefined>

  constructor() {
    const at = (name: string) => join(this.#directory, name)
    writeFileSync(at('tiny.rb'), 'puts "hello"\n')
    const spec = `Gem::Specification.new("tiny", "1.0.0") { |s| s.summary = "t"; s.authors = ["t"]; s.files = ["tiny.rb"]; s.require_paths = ["."] }`
    writeFileSync(at('tiny.gemspec'), spec)
    const build = `gem build -q tiny.gemspec && ruby -rzlib -e 'File.binwrite("rz", Zlib.deflate(Marshal.dump(Gem::Specification.load("tiny.gemspec"))))'`
    const { success, stderr } = Bun.spawnSync(['sh', '-c', build], { cwd: this.#directory, env: { PATH } })
    if (!success) throw new Error(String(stderr))
    const gem = readFileSync(at('tiny-1.0.0.gem'))
    const info = `---\n1.0.0 |checksum:${hash('sha256', gem)}\n`
    const files: Record<string, string | Uint8Array<ArrayBuffer>> = {
      '/versions': `created_at: 2020-01-01T00:00:00Z\n---\ntiny 1.0.0 ${hash('md5', info)}\n`,
      '/info/tiny': info,
      '/gems/tiny-1.0.0.gem': gem,
      '/quick/Marshal.4.8/tiny-1.0.0.gemspec.rz': readFileSync(at('rz')),
    }
    this.#server = Bun.serve({
      hostname: '127.0.0.1',
      port: 0,
      fetch: (request) => {
        const { pathname } = new URL(request.url)
        this.asked.push(pathname)
        const body = files[pathname]
        if (body === undefined) return new Response(null, { status: 404 })
        return new Response(body, { headers: { etag: `"${hash('md5', body)}"` } })
      },
    })
  }

  get url(): string {
    return `http://127.0.0.1:${this.#server.port}`
  }

  [Symbol.dispose](): void {
    void this.#server.stop(true)
    rmSync(this.#directory, { recursive: true })
  }
}

const GEMFILE = { Gemfile: 'source "https://rubygems.org"\ngem "tiny"\n' }
const BUNDLE =
  'bundle config set --local path vendor >&2 && bundle install >&2 && bundle exec ruby -e "require :tiny.to_s"'

withRuby('Bundler and gem install through the relay, and a gem is fetched once for all servers', async () => {
  using registry = new GemRegistry()
  const machine = { ...NO_SETTINGS, environment: { BUNDLE_MIRROR__ALL: registry.url } }
  await using world = new World([], { machine })
  const first = await world.server('srv_a', GEMFILE)
  const { stdout, stderr } = await first.install(BUNDLE)
  expect({ stdout, stderr }).toMatchObject({ stdout: 'hello\n' })
  expect(await first.text('Gemfile.lock')).toContain('remote: https://rubygems.org/\n')
  const second = await world.server('srv_b', { ...GEMFILE, 'Gemfile.lock': await first.text('Gemfile.lock') })
  expect(await second.install(BUNDLE)).toMatchObject({ stdout: 'hello\n' })
  const third = await world.server('srv_c')
  const installed = await third.install('gem install --user-install tiny >&2 && ruby -e "require :tiny.to_s"')
  expect({ stdout: installed.stdout, stderr: installed.stderr }).toMatchObject({ stdout: 'hello\n' })
  expect(registry.asked.filter((path) => path.endsWith('.gem'))).toHaveLength(1)
  expect(world.packages.takeProblems('srv_c')).toEqual([])
})

withRuby('a mirror of the project’s or the user’s own wins', async () => {
  using own = new GemRegistry()
  await using world = new World([])
  for (const path of ['.bundle/config', 'project/.bundle/config']) {
    const server = await world.server(`srv_${path.length}`, {
      [path]: `---\nBUNDLE_MIRROR__HTTPS://RUBYGEMS__ORG/: "${own.url}"\n`,
      'project/Gemfile': GEMFILE.Gemfile,
    })
    server.sandbox.forward(Number(new URL(own.url).port))
    const { stdout, stderr } = await server.install(BUNDLE, { cwd: 'project' })
    expect({ stdout, stderr }).toMatchObject({ stdout: 'hello\n' })
  }
})
