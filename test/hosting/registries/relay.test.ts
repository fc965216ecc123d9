import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { LocalWorkspace } from '../../../src/compute/local/workspace.ts'
import { zip } from '../../resources/projects/sources/archives.ts'
import { World } from './world.ts'

/** The registries of other languages than JavaScript, each by a small one on loopback. */

const sha256 = (bytes: Uint8Array | string, form: 'hex' | 'base64' = 'hex'): string =>
  new Bun.CryptoHasher('sha256').update(bytes).digest(form)
const sha1 = (bytes: Uint8Array): string => new Bun.CryptoHasher('sha1').update(bytes).digest('hex')
const bytes = (text: string): Uint8Array<ArrayBuffer> => new TextEncoder().encode(text)

// biome-ignore lint/suspicious/noExplicitAny: a test reads whatever shape it expects
const jsonOf = async (response: Promise<Response>): Promise<any> => (await response).json()

type Content = string | Uint8Array<ArrayBuffer> | (() => Response)

/** A server of files by path, and a world whose machine is set to use it. */
class Place implements AsyncDisposable {
  readonly files: Record<string, Content> = {}
  readonly asked: string[] = []
  readonly #server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch: (request) => {
      const path = decodeURIComponent(new URL(request.url).pathname)
      this.asked.push(path)
      const content = this.files[path]
      if (content === undefined) return new Response(null, { status: 404 })
      if (typeof content === 'function') return content()
      const type = path.endsWith('/') ? 'application/vnd.pypi.simple.v1+json' : 'text/plain'
      return new Response(content, { headers: { 'content-type': type } })
    },
  })
  readonly url = `http://127.0.0.1:${this.#server.port}`
  readonly world: World
  readonly #home = mkdtempSync(join(tmpdir(), 'berth-home-'))

  constructor() {
    const environment = { PIP_INDEX_URL: `${this.url}/simple`, GOPROXY: `${this.url}/go,direct` }
    const write = (path: string, text: string): void => {
      mkdirSync(join(this.#home, dirname(path)), { recursive: true })
      writeFileSync(join(this.#home, path), text)
    }
    const source = `[source.mine]\nregistry = "sparse+${this.url}/index/"`
    write('.cargo/config.toml', `[source.crates-io]\nreplace-with = "mine"\n${source}\n`)
    const mirror = `<mirror><mirrorOf>*</mirrorOf><url>${this.url}/m2/</url></mirror>`
    write('.m2/settings.xml', `<settings><mirrors>${mirror}</mirrors></settings>`)
    write('.gemrc', `---\n:sources:\n- ${this.url}/rubygems/\n`)
    this.world = new World([], { machine: { environment, home: this.#home, etc: '/nowhere' } })
  }

  /** Asks the relay as a server does that got its address by a variable. */
  async ask(path: string, { accept = '*/*', serverId = 'srv_a', method = 'GET' } = {}): Promise<Response> {
    const paths = { tools: '/t', home: '/h', caches: '/c' }
    const env = this.world.packages.commandEnvironment(serverId, paths)
    const [base] = env.PIP_INDEX_URL?.split('/pypi/') ?? []
    return fetch(`${base}/${path}`, { method, headers: { accept } })
  }

  count(path: string): number {
    return this.asked.filter((one) => one === path).length
  }

  get kept(): string[] {
    return readdirSync(join(this.world.cache, 'files'))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.world[Symbol.asyncDispose]()
    await this.#server.stop(true)
    rmSync(this.#home, { recursive: true })
  }
}

let place: Place
beforeEach(() => {
  place = new Place()
})
afterEach(() => place[Symbol.asyncDispose]())

const JSON_TYPE = 'application/vnd.pypi.simple.v1+json'

describe('of a package index', () => {
  const WHEEL = bytes('a wheel')
  const METADATA = bytes('Name: tiny')
  const page = (fields: object = {}): string =>
    JSON.stringify({
      files: [
        {
          filename: 'tiny-1.0-py3-none-any.whl',
          url: `${place.url}/kept/elsewhere/tiny-1.0-py3-none-any.whl`,
          hashes: { sha256: sha256(WHEEL) },
          'requires-python': '>=3.8',
          'core-metadata': { sha256: sha256(METADATA) },
          ...fields,
        },
      ],
    })

  test('pages name the relay’s files by relative addresses, in JSON and in HTML', async () => {
    place.files['/simple/tiny/'] = page({ yanked: 'a "bad" one' })
    const json = await jsonOf(place.ask('pypi/simple/Tiny/', { accept: JSON_TYPE }))
    expect(json.files).toEqual([
      {
        filename: 'tiny-1.0-py3-none-any.whl',
        url: '../../files/tiny/tiny-1.0-py3-none-any.whl',
        hashes: { sha256: sha256(WHEEL) },
        'requires-python': '>=3.8',
        'core-metadata': { sha256: sha256(METADATA) },
        yanked: 'a "bad" one',
      },
    ])
    const html = await (await place.ask('pypi/simple/tiny/', { accept: 'text/html' })).text()
    expect(html).toContain(
      `<a href="../../files/tiny/tiny-1.0-py3-none-any.whl#sha256=${sha256(WHEEL)}" data-requires-python="&gt;=3.8" data-yanked="a &quot;bad&quot; one" data-core-metadata="sha256=${sha256(METADATA)}">tiny-1.0-py3-none-any.whl</a>`,
    )
    expect(place.count('/simple/tiny/')).toBe(1)
  })

  test('a page in HTML alone is understood, with addresses relative to it', async () => {
    const link = `<a data-requires-python="&gt;=3.8" href="../../kept/tiny-1.0.tar.gz#sha256=${sha256('x')}">tiny-1.0.tar.gz</a>`
    const headers = { 'content-type': 'text/html; charset=utf-8' }
    place.files['/simple/tiny/'] = () => new Response(`<html><body>${link}</body></html>`, { headers })
    place.files['/kept/tiny-1.0.tar.gz'] = 'x'
    const { files } = await jsonOf(place.ask('pypi/simple/tiny/', { accept: JSON_TYPE }))
    expect(files).toMatchObject([{ filename: 'tiny-1.0.tar.gz', 'requires-python': '>=3.8', yanked: false }])
    expect(await (await place.ask('pypi/files/tiny/tiny-1.0.tar.gz')).text()).toBe('x')
  })

  test('a file and its metadata are fetched once for all servers, checked against their hashes', async () => {
    place.files['/simple/tiny/'] = page()
    place.files['/kept/elsewhere/tiny-1.0-py3-none-any.whl'] = WHEEL
    place.files['/kept/elsewhere/tiny-1.0-py3-none-any.whl.metadata'] = METADATA
    for (const serverId of ['srv_a', 'srv_b']) {
      const path = 'pypi/files/tiny/tiny-1.0-py3-none-any.whl'
      expect(await (await place.ask(path, { serverId })).bytes()).toEqual(WHEEL)
      expect(await (await place.ask(`${path}.metadata`, { serverId })).text()).toBe('Name: tiny')
    }
    expect(place.asked).toHaveLength(3)
    expect(place.kept.sort()).toEqual([`sha256-${sha256(WHEEL)}`, `sha256-${sha256(METADATA)}`].sort())
  })

  test('a file that is not what the page says is refused, and nothing of it kept', async () => {
    place.files['/simple/tiny/'] = page()
    place.files['/kept/elsewhere/tiny-1.0-py3-none-any.whl'] = 'poison'
    const response = await place.ask('pypi/files/tiny/tiny-1.0-py3-none-any.whl')
    expect(response.status).toBe(424)
    expect(await response.text()).toContain('is not what its own record says')
    expect(place.kept).toEqual([])
  })

  test('a file without a hash is given, but neither kept nor taken from another host', async () => {
    place.files['/simple/tiny/'] = page({ hashes: {} })
    place.files['/kept/elsewhere/tiny-1.0-py3-none-any.whl'] = WHEEL
    for (let round = 1; round <= 2; round += 1) {
      expect(await (await place.ask('pypi/files/tiny/tiny-1.0-py3-none-any.whl')).bytes()).toEqual(WHEEL)
      expect(place.count('/kept/elsewhere/tiny-1.0-py3-none-any.whl')).toBe(round)
    }
    expect(place.kept).toEqual([])
    await using other = new Place()
    other.files['/secret'] = 'of a private host'
    place.files['/simple/evil/'] = page({ hashes: {}, filename: 'evil-1.tar.gz', url: `${other.url}/secret` })
    const refused = await place.ask('pypi/files/evil/evil-1.tar.gz')
    expect(refused.status).toBe(424)
    expect(await refused.text()).toContain('at another host than its registry')
    expect(other.asked).toEqual([])
  })
})

describe('of Go’s modules', () => {
  const zipOf = (files: Record<string, string>) =>
    zip(...Object.entries(files).map(([name, content]) => ({ name, content })))
  const GO_MOD = 'module example.com/Tiny\n'
  const ZIP = zipOf({
    'example.com/Tiny@v1.0.0/go.mod': GO_MOD,
    'example.com/Tiny@v1.0.0/a.go': 'package tiny\n'.repeat(100),
  })
  const lines = (files: Record<string, string>): string =>
    Object.entries(files)
      .sort(([one], [other]) => (one < other ? -1 : 1))
      .map(([name, text]) => `${sha256(text)}  ${name}\n`)
      .join('')
  const ofZip = sha256(
    lines({
      'example.com/Tiny@v1.0.0/go.mod': GO_MOD,
      'example.com/Tiny@v1.0.0/a.go': 'package tiny\n'.repeat(100),
    }),
    'base64',
  )
  const ofMod = sha256(lines({ 'go.mod': GO_MOD }), 'base64')
  const LOOKUP = '/go/sumdb/sum.golang.org/lookup/example.com/!tiny@v1.0.0'
  const record = (zip = ofZip): string =>
    `1\nexample.com/Tiny v1.0.0 h1:${zip}\nexample.com/Tiny v1.0.0/go.mod h1:${ofMod}\n\ngo.sum database tree\n`

  test('files are kept by what the checksum database says of what is in them', async () => {
    place.files['/go/example.com/!tiny/@v/v1.0.0.zip'] = ZIP
    place.files['/go/example.com/!tiny/@v/v1.0.0.mod'] = GO_MOD
    place.files[LOOKUP] = record()
    for (const serverId of ['srv_a', 'srv_b']) {
      const zip = await place.ask('go/example.com/!tiny/@v/v1.0.0.zip', { serverId })
      expect(await zip.bytes()).toEqual(ZIP)
      expect(await (await place.ask('go/example.com/!tiny/@v/v1.0.0.mod', { serverId })).text()).toBe(GO_MOD)
    }
    expect(place.count('/go/example.com/!tiny/@v/v1.0.0.zip')).toBe(1)
    expect(place.kept.sort()).toEqual([`sha256-${sha256(ZIP)}`, `sha256-${sha256(GO_MOD)}`].sort())
  })

  test('an archive with other content is refused, and nothing of it kept', async () => {
    place.files['/go/example.com/!tiny/@v/v1.0.0.zip'] = zipOf({ 'example.com/Tiny@v1.0.0/go.mod': 'other' })
    place.files[LOOKUP] = record()
    expect((await place.ask('go/example.com/!tiny/@v/v1.0.0.zip')).status).toBe(424)
    place.files['/go/example.com/!tiny/@v/v1.0.0.zip'] = 'no archive'
    const response = await place.ask('go/example.com/!tiny/@v/v1.0.0.zip')
    expect(response.status).toBe(424)
    expect(await response.text()).toMatch(/is no module: .*not a zip file/i)
    expect(place.kept).toEqual([])
  })

  test('a module that the database does not have is given, and not kept', async () => {
    place.files['/go/example.com/!tiny/@v/v1.0.0.zip'] = ZIP
    expect(await (await place.ask('go/example.com/!tiny/@v/v1.0.0.zip')).bytes()).toEqual(ZIP)
    expect(place.kept).toEqual([])
  })

  test('lists, versions and the database itself, tiles included, pass unchanged; what is missing is 404', async () => {
    const tile = new Uint8Array(256).map((_, index) => index)
    place.files['/go/sumdb/sum.golang.org/tile/8/0/x001/002'] = tile
    place.files['/go/sumdb/sum.golang.org/supported'] = ''
    place.files['/go/example.com/!tiny/@v/list'] = 'v1.0.0\n'
    place.files['/go/example.com/!tiny/@latest'] = '{"Version":"v1.0.0"}'
    expect(await (await place.ask('go/sumdb/sum.golang.org/tile/8/0/x001/002')).bytes()).toEqual(tile)
    expect((await place.ask('go/sumdb/sum.golang.org/supported')).status).toBe(200)
    expect(await (await place.ask('go/example.com/!tiny/@v/list')).text()).toBe('v1.0.0\n')
    expect(await (await place.ask('go/example.com/!tiny/@latest')).json()).toEqual({ Version: 'v1.0.0' })
    // `go` takes 404 as a reason to ask the next proxy.
    expect((await place.ask('go/example.com/@v/list')).status).toBe(404)
    expect(place.world.packages.takeProblems('srv_a')).toEqual([])
  })
})

describe('what servers are given', () => {
  test('are addresses of the relay, with what the machine has after its proxies', async () => {
    const env = place.world.packages.commandEnvironment('srv_a', { tools: '/t', home: '/h', caches: '/c' })
    expect(env.GOPROXY).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/-\/\w{43}\/go,direct$/)
    expect(env).toMatchObject({ GOMODCACHE: '/c/go-mod', CARGO_INSTALL_ROOT: '/h/.cargo' })
    // It would end up in uv.lock.
    expect(env.UV_DEFAULT_INDEX).toBeUndefined()
  })

  test('are the same after a restart, since caches know packages by their addresses', async () => {
    const paths = { tools: '/t', home: '/h', caches: '/c' }
    const before = place.world.packages.commandEnvironment('srv_a', paths)
    await place.world.restart()
    expect(place.world.packages.commandEnvironment('srv_a', paths)).toEqual(before)
    expect(place.world.packages.tokenOf('srv_b')).not.toBe(place.world.packages.tokenOf('srv_a'))
  })

  test('a credential in an address is valid for its server only, and ends with it', async () => {
    place.files['/simple/tiny/'] = '{"files":[]}'
    const token = place.world.packages.tokenOf('srv_a')
    const { url } = await place.ask('pypi/simple/tiny/')
    expect((await fetch(url)).status).toBe(200)
    expect((await fetch(url.replace(token, token.toLowerCase()))).status).toBe(401)
    expect((await place.ask('pypi/simple/tiny/', { method: 'POST' })).status).toBe(405)
    place.world.packages.forget('srv_a')
    expect((await fetch(url)).status).toBe(401)
  })

  test.each([
    'pypi/simple/../../secret/',
    'pypi/files/tiny/..%2f..%2fsecret',
    'pypi/other/tiny/',
    'pypi/files/tiny/%',
    'crates/files/a/%',
    'go/example.com/a/@v/v1%2f..%2fsecret.zip',
    'go/sumdb/..%2f..%2fsecret',
    'crates/config.json/more',
    'crates/aa/bb/other',
    'crates/files/a/%2e%2e',
    'maven/..%2fsecret/a.jar',
    'maven/settings.xml',
    'rubygems/gems/..%2fsecret-1.gem',
    'rubygems/info/..%2f..',
    'rubygems/api/v1/dependencies',
    'none/a',
  ])('never is what no registry of a package manager has: %s', async (path) => {
    const { status } = await place.ask(path)
    expect([401, 404]).toContain(status)
    expect(place.asked).toEqual([])
  })
})

describe('of Cargo’s crates', () => {
  const CRATE = bytes('a crate')
  const version = (fields: object = {}): string =>
    JSON.stringify({ name: 'Tiny', vers: '1.0.0+a', deps: [], cksum: sha256(CRATE), features: {}, ...fields })

  test.each([
    ['/dl/{crate}-{version}', '/dl/Tiny-1.0.0+a'],
    ['/dl/{lowerprefix}/{sha256-checksum}', `/dl/ti/ny/${sha256(CRATE)}`],
    ['/dl', '/dl/Tiny/1.0.0+a/download'],
  ])(
    'files are kept by their checksum in the index, from where the registry has them: %s',
    async (dl, path) => {
      place.files['/index/config.json'] = JSON.stringify({ dl: `${place.url}${dl}` })
      place.files['/index/ti/ny/tiny'] = `${version()}\n`
      place.files[path] = CRATE
      const config = await jsonOf(place.ask('crates/config.json'))
      const [, base = ''] = /(\/-\/.*)\/crates\/files\/\{crate\}\/\{version\}$/.exec(config.dl) ?? []
      expect(base).not.toBe('')
      expect(await (await place.ask('crates/ti/ny/tiny')).text()).toBe(`${version()}\n`)
      for (const serverId of ['srv_a', 'srv_b'])
        expect(await (await place.ask('crates/files/Tiny/1.0.0%2Ba', { serverId })).bytes()).toEqual(CRATE)
      expect(place.count(path)).toBe(1)
    },
  )

  test('a crate with another checksum is refused', async () => {
    place.files['/index/config.json'] = JSON.stringify({ dl: `${place.url}/dl` })
    place.files['/index/ti/ny/tiny'] = version({ cksum: sha256('other') })
    place.files['/dl/Tiny/1.0.0+a/download'] = CRATE
    expect((await place.ask('crates/files/Tiny/1.0.0+a')).status).toBe(424)
    expect((await place.ask('crates/files/Tiny/9.9.9')).status).toBe(404)
    expect(place.kept).toEqual([])
  })
})

describe('of Maven’s repositories', () => {
  const JAR = bytes('a jar')

  test('files are kept by the hash beside them; snapshots, which change, are not', async () => {
    place.files['/m2/a/b/1/b-1.jar'] = JAR
    place.files['/m2/a/b/1/b-1.jar.sha1'] = `${sha1(JAR)}  b-1.jar\n`
    place.files['/m2/a/b/1-SNAPSHOT/b-1.jar'] = JAR
    place.files['/m2/a/b/1-SNAPSHOT/b-1.jar.sha1'] = sha1(JAR)
    place.files['/m2/a/b/maven-metadata.xml'] = '<metadata/>'
    for (const serverId of ['srv_a', 'srv_b']) {
      expect(await (await place.ask('maven/a/b/1/b-1.jar', { serverId })).bytes()).toEqual(JAR)
      expect(await (await place.ask('maven/a/b/1-SNAPSHOT/b-1.jar', { serverId })).bytes()).toEqual(JAR)
    }
    expect(await (await place.ask('maven/a/b/1/b-1.jar.sha1')).text()).toBe(`${sha1(JAR)}  b-1.jar\n`)
    expect(await (await place.ask('maven/a/b/maven-metadata.xml')).text()).toBe('<metadata/>')
    expect(place.count('/m2/a/b/1/b-1.jar')).toBe(1)
    expect(place.count('/m2/a/b/1-SNAPSHOT/b-1.jar')).toBe(2)
  })

  test('a file with another hash is refused', async () => {
    place.files['/m2/a/b/1/b-1.jar'] = JAR
    place.files['/m2/a/b/1/b-1.jar.sha1'] = sha1(bytes('other'))
    expect((await place.ask('maven/a/b/1/b-1.jar')).status).toBe(424)
    expect(place.kept).toEqual([])
  })
})

const GRADLE = Bun.which('gradle', { PATH: '/usr/local/bin:/usr/bin:/bin' })
if (GRADLE === null) console.error('SKIP Gradle: there is no gradle on this machine')

test.skipIf(GRADLE === null)(
  'Gradle takes what it fetches from Maven Central from the relay',
  async () => {
    const pom =
      '<project><modelVersion>4.0.0</modelVersion><groupId>a</groupId><artifactId>b</artifactId><version>1</version></project>'
    place.files['/m2/a/b/1/b-1.pom'] = pom
    place.files['/m2/a/b/1/b-1.jar'] = bytes('a jar')
    place.files['/m2/a/b/1/b-1.jar.sha1'] = sha1(bytes('a jar'))
    const home = mkdtempSync(join(tmpdir(), 'berth-gradle-'))
    try {
      const env = place.world.packages.commandEnvironment('srv_a', { tools: '/t', home, caches: home })
      await place.world.packages.prepareCaches('srv_a', new LocalWorkspace(home))
      writeFileSync(
        join(home, 'build.gradle'),
        `repositories { mavenCentral() }
configurations { own }
dependencies { own 'a:b:1' }
task show { doLast { println configurations.own.files.collect { file -> file.text } } }`,
      )
      const gradle = Bun.spawn([GRADLE ?? '', '--no-daemon', '-q', 'show'], {
        cwd: home,
        stdio: ['ignore', 'pipe', 'pipe'],
        env: {
          ...env,
          HOME: home,
          PATH: '/usr/local/bin:/usr/bin:/bin',
          GRADLE_USER_HOME: join(home, 'gradle'),
        },
      })
      const [stdout, stderr] = await Promise.all([gradle.stdout.text(), gradle.stderr.text()])
      expect({ stdout, stderr }).toMatchObject({ stdout: '[a jar]\n' })
      expect(place.kept).toEqual([`sha1-${sha1(bytes('a jar'))}`])
    } finally {
      rmSync(home, { recursive: true })
    }
  },
  60_000,
)

describe('of RubyGems', () => {
  const GEM = bytes('a gem')
  const info = (digest = sha256(GEM)): string =>
    `---\n1.0.0 other:>= 1&< 3|checksum:${sha256('old')},ruby:>= 2.0\n2.0.0-x86_64-linux |ruby:> 3,checksum:${digest}\n`
  const FILE = 'a-1-tiny-2.0.0-x86_64-linux.gem'

  test('files are kept by their checksum in the index, whose ETag is its MD5', async () => {
    place.files['/rubygems/info/a-1-tiny'] = info()
    place.files[`/rubygems/gems/${FILE}`] = GEM
    const index = await place.ask('rubygems/info/a-1-tiny')
    expect(await index.text()).toBe(info())
    expect(index.headers.get('etag')).toBe(`"${new Bun.CryptoHasher('md5').update(info()).digest('hex')}"`)
    for (const serverId of ['srv_a', 'srv_b'])
      expect(await (await place.ask(`rubygems/gems/${FILE}`, { serverId })).bytes()).toEqual(GEM)
    expect(place.count(`/rubygems/gems/${FILE}`)).toBe(1)
    expect(place.kept).toEqual([`sha256-${sha256(GEM)}`])
  })

  test('a gem with another checksum is refused, and one that is not in the index', async () => {
    place.files['/rubygems/info/a-1-tiny'] = info(sha256('other'))
    place.files[`/rubygems/gems/${FILE}`] = GEM
    expect((await place.ask(`rubygems/gems/${FILE}`)).status).toBe(424)
    expect((await place.ask('rubygems/gems/a-1-tiny-3.0.0.gem')).status).toBe(404)
    expect(place.kept).toEqual([])
  })

  test('lists, and what gem reads of a version, pass unchanged', async () => {
    const binary = new Uint8Array(256).map((_, index) => index)
    const paths = [
      'versions',
      'names',
      'specs.4.8.gz',
      'latest_specs.4.8.gz',
      'quick/Marshal.4.8/tiny-1.0.gemspec.rz',
    ]
    for (const path of paths) {
      place.files[`/rubygems/${path}`] = binary
      expect(await (await place.ask(`rubygems/${path}`)).bytes()).toEqual(binary)
    }
  })
})
