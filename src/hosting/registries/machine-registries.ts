import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fieldsOf } from '../../runtime/is-object.ts'
import { parseToml } from '../../runtime/toml.ts'
import type { Mount } from './mount.ts'

/** Most bytes of a file with settings. A larger one counts as empty. @bound owner */
const MAX_BYTES = 2 ** 20

/** Files with the machine's certificate authorities; each distribution has one of them. */
const AUTHORITIES = [
  '/etc/ssl/certs/ca-certificates.crt',
  '/etc/pki/tls/certs/ca-bundle.crt',
  '/etc/ssl/ca-bundle.pem',
  '/etc/ssl/cert.pem',
]

/** Gradle's portal of plug-ins, which no setting of a machine replaces. */
const PLUGIN_PORTAL = { address: 'https://plugins.gradle.org/m2', setting: 'the default' }

/** Where the settings of a machine's package managers are. */
export interface MachineSettings {
  /** The variables that berth was started with. */
  readonly environment: Readonly<Record<string, string | undefined>>
  /** Absolute path of the user's home directory; null if there is none. */
  readonly home: string | null
  /** Absolute path of the directory of settings for all users: /etc, except in tests. */
  readonly etc: string
}

/** The registries that a machine's package managers are set to use. */
export interface MachineRegistries {
  readonly mounts: readonly Mount[]
  /** GOPROXY of servers, with `{NAME}` in the place of mounts. */
  readonly goProxy: string
  /** Which repositories Maven's mirror is for. */
  readonly mavenMirrorOf: string
  /** Addresses that berth does not use, each a sentence. */
  readonly leftOut: readonly string[]
}

/**
 * Reads which registries the machine's package managers are set to use: their addresses alone, never a credential. An
 * address with a user in it is left out. Further indexes (`extra-index-url`) are not read.
 */
export function readMachineRegistries(settings: MachineSettings): MachineRegistries {
  const reader = new SettingsReader(settings)
  const { goProxy, mounts } = goRegistries(reader)
  const maven = mavenMirror(reader)
  const pypi = reader.first('https://pypi.org/simple', pythonIndexes(reader))
  const rubygems = reader.first('https://rubygems.org', gemSources(reader))
  const crates = reader.first('https://index.crates.io', cratesSources(reader))
  return {
    mounts: [
      { name: 'pypi', protocol: 'pypi', ...pypi },
      { name: 'crates', protocol: 'crates', ...crates },
      { name: 'rubygems', protocol: 'rubygems', ...rubygems },
      { name: 'maven', protocol: 'maven', address: maven.address, setting: maven.setting },
      { name: 'gradle-plugins', protocol: 'maven', ...PLUGIN_PORTAL },
      ...mounts,
    ],
    goProxy,
    mavenMirrorOf: maven.mirrorOf,
    leftOut: reader.leftOut,
  }
}

/** Returns the certificate authorities of a machine, as PEM. */
export function readAuthorities({ environment, etc, home }: MachineSettings): string[] {
  const reader = new SettingsReader({ environment, etc, home })
  const named = [
    environment.SSL_CERT_FILE,
    environment.PIP_CERT,
    ...pipSettings(reader, 'cert').map(([, path]) => path),
  ]
  const files = [...named, AUTHORITIES.find((path) => existsSync(path))]
  return [...new Set(files)].flatMap((path) => {
    const text = path === undefined ? '' : reader.read(path)
    // A file may have a key beside the certificate: certificates are public, keys are not.
    return text.match(/-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/g) ?? []
  })
}

/** A value of a setting, with the setting's name for a person. */
type Setting = readonly [name: string, value: string]

/** Reads settings, and notes the addresses that are left out. */
class SettingsReader {
  readonly environment: MachineSettings['environment']
  readonly leftOut: string[] = []
  readonly #settings: MachineSettings

  constructor(settings: MachineSettings) {
    this.environment = settings.environment
    this.#settings = settings
  }

  /** Returns the absolute path of a file in the home directory; null if there is none. */
  inHome(path: string): string | null {
    const { home } = this.#settings
    return home === null ? null : join(home, path)
  }

  inEtc(path: string): string {
    return join(this.#settings.etc, path)
  }

  /** Returns the absolute path of a file in the user's directory of settings. */
  inConfig(path: string): string | null {
    const { XDG_CONFIG_HOME: config } = this.environment
    return config ? join(config, path) : this.inHome(join('.config', path))
  }

  /** Reads a file; returns an empty text if that is not possible. */
  read(path: string | null): string {
    try {
      const bytes = path === null ? null : readFileSync(path)
      return bytes === null || bytes.length > MAX_BYTES * 4 ? '' : bytes.toString('utf8')
    } catch {
      // There is none, or it is not for this user.
      return ''
    }
  }

  toml(path: string | null): Record<string, unknown> {
    try {
      return parseToml(this.read(path))
    } catch {
      // Its own program reports the mistake.
      return {}
    }
  }

  variable(...names: string[]): Setting[] {
    return names.flatMap((name): Setting[] => {
      const value = this.environment[name]
      return value ? [[name, value]] : []
    })
  }

  /** Returns the first of the addresses that can be used, else the registry's public one. */
  first(byDefault: string, settings: readonly Setting[]): Pick<Mount, 'address' | 'setting'> {
    for (const [setting, value] of settings) {
      const address = this.address(setting, value)
      if (address !== null) return { address, setting }
      break
    }
    return { address: byDefault, setting: 'the default' }
  }

  /** Returns an address without a trailing slash; null, with a note, if it is none that can be used. */
  address(setting: string, value: string): string | null {
    const url = URL.parse(value.trim())
    if (url === null || !/^https?:$/.test(url.protocol)) {
      this.leftOut.push(`${setting} is no address that berth can use.`)
      return null
    }
    if (url.username !== '' || url.password !== '') {
      this.leftOut.push(
        `${setting} (${url.host}) has a user in its address, which berth does not pass on to servers: give it to a server as a secret.`,
      )
      return null
    }
    return `${url.origin}${url.pathname.replace(/\/+$/, '')}`
  }
}

/** Returns the indexes that Python's package managers are set to use, the strongest setting first. */
function pythonIndexes(reader: SettingsReader): Setting[] {
  const uv = [reader.inConfig('uv/uv.toml'), reader.inEtc('uv/uv.toml')].flatMap((path): Setting[] => {
    const { 'index-url': url, index } = reader.toml(path)
    const indexes: Record<string, unknown>[] = Array.isArray(index) ? index.map(fieldsOf) : []
    const used = url ?? indexes.find((one) => one.default === true)?.url
    return typeof used === 'string' ? [[`the index of ${path}`, used]] : []
  })
  return [
    ...reader.variable('PIP_INDEX_URL', 'UV_DEFAULT_INDEX', 'UV_INDEX_URL'),
    ...pipSettings(reader, 'index-url'),
    ...uv,
  ]
}

/** Returns the values of a setting in the files of pip, the strongest first. */
function pipSettings(reader: SettingsReader, name: string): Setting[] {
  const { PIP_CONFIG_FILE: given } = reader.environment
  const usual = [
    reader.inConfig('pip/pip.conf'),
    reader.inHome('.pip/pip.conf'),
    reader.inEtc('xdg/pip/pip.conf'),
  ]
  return [given ?? null, ...usual, reader.inEtc('pip.conf')].flatMap((path): Setting[] => {
    const found: Record<string, string> = {}
    let section = ''
    for (const line of reader.read(path).split('\n')) {
      section = /^\s*\[(\w+)\]/.exec(line)?.[1] ?? section
      const [, key = '', value = ''] = /^([\w-]+)\s*[=:]\s*(\S+)/.exec(line) ?? []
      if (key.replaceAll('_', '-') === name) found[section] ??= value
    }
    const value = found.install ?? found.global
    return value === undefined ? [] : [[`${name} of ${path}`, value]]
  })
}

/** Returns the proxies that Go is set to use: each is a mount, so `go` itself passes from one to the next. */
function goRegistries(reader: SettingsReader): { goProxy: string; mounts: Mount[] } {
  const { GOENV } = reader.environment
  const file = GOENV === undefined ? reader.inConfig('go/env') : GOENV === 'off' ? null : GOENV
  const inFile = /^GOPROXY=(.+)$/m.exec(reader.read(file))?.[1]
  const [setting, list] = reader.variable('GOPROXY')[0] ??
    (inFile === undefined ? null : [`GOPROXY of ${file}`, inFile]) ?? [
      'the default',
      'https://proxy.golang.org,direct',
    ]
  const mounts: Mount[] = []
  const goProxy = list.replace(/[^,|]+/g, (entry) => {
    if (/^\s*(?:direct|off)\s*$/.test(entry)) return entry.trim()
    const address = reader.address(setting, entry)
    if (address === null) return ''
    const name = mounts.length === 0 ? 'go' : `go-${mounts.length + 1}`
    mounts.push({ name, protocol: 'go', address, setting })
    return `{${name}}`
  })
  // Without what was left out.
  return { goProxy: goProxy.replace(/([,|])[,|]+/g, '$1').replace(/^[,|]|[,|]$/g, '') || 'off', mounts }
}

/** Returns what replaces crates.io by Cargo's settings. */
function cratesSources(reader: SettingsReader): Setting[] {
  const { CARGO_HOME } = reader.environment
  for (const name of ['config.toml', 'config']) {
    const path = CARGO_HOME ? join(CARGO_HOME, name) : reader.inHome(`.cargo/${name}`)
    const { source, registries } = reader.toml(path)
    const sources = fieldsOf(source)
    let replaced = fieldsOf(sources['crates-io'])
    // A source may be replaced in turn.
    for (let step = 0; step < 5 && typeof replaced['replace-with'] === 'string'; step += 1) {
      const by = replaced['replace-with']
      replaced = fieldsOf(sources[by] ?? { registry: fieldsOf(fieldsOf(registries)[by]).index })
    }
    const { registry } = replaced
    if (typeof registry !== 'string') continue
    return [[`the source of crates.io in ${path}`, registry.startsWith('sparse+') ? registry.slice(7) : '']]
  }
  return []
}

/** Returns what Bundler and `gem` are set to use in the place of rubygems.org, the strongest setting first. */
function gemSources(reader: SettingsReader): Setting[] {
  const names = ['BUNDLE_MIRROR__HTTPS://RUBYGEMS__ORG/', 'BUNDLE_MIRROR__ALL']
  const { BUNDLE_USER_CONFIG: given, BUNDLE_USER_HOME: home } = reader.environment
  const file = given ?? (home ? join(home, 'config') : reader.inHome('.bundle/config'))
  const mirrors = names.flatMap((name): Setting[] => {
    const line = reader
      .read(file)
      .split('\n')
      .find((one) => one.startsWith(`${name}: `))
    return line === undefined ? [] : [[`the mirror of ${file}`, unquoted(line.slice(name.length + 2))]]
  })
  const sources = [reader.inHome('.gemrc'), reader.inHome('.config/gem/gemrc'), reader.inEtc('gemrc')]
  const first = sources.flatMap((path): Setting[] => {
    const [, source] = /^:?sources:[ \t]*\n\s*- *(\S+)/m.exec(reader.read(path)) ?? []
    return source === undefined ? [] : [[`the source of ${path}`, unquoted(source)]]
  })
  return [...reader.variable(...names), ...mirrors, ...first]
}

const unquoted = (value: string): string => value.trim().replace(/^(["'])(.*)\1$/, '$2')

/** Returns the mirror of Maven Central by Maven's settings. */
function mavenMirror(reader: SettingsReader): { address: string; setting: string; mirrorOf: string } {
  const { MAVEN_HOME, M2_HOME } = reader.environment
  const home = MAVEN_HOME ?? M2_HOME
  const files = [reader.inHome('.m2/settings.xml'), home ? join(home, 'conf/settings.xml') : null]
  for (const path of [...files, reader.inEtc('maven/settings.xml')]) {
    const xml = reader.read(path).replace(/<!--[\s\S]*?-->/g, '')
    for (const [, mirror = ''] of xml.matchAll(/<mirror>([\s\S]*?)<\/mirror>/g)) {
      const field = (name: string): string =>
        new RegExp(`<${name}>\\s*([^<]*?)\\s*</${name}>`).exec(mirror)?.[1]?.replaceAll('&amp;', '&') ?? ''
      const of = field('mirrorOf').split(/\s*,\s*/)
      const isOfCentral =
        ['*', 'external:*', 'central'].some((one) => of.includes(one)) && !of.includes('!central')
      if (!isOfCentral || field('blocked') === 'true') continue
      const setting = `the mirror of ${path}`
      const address = reader.address(setting, field('url'))
      if (address !== null) return { address, setting, mirrorOf: of.join(',') }
    }
  }
  return { address: 'https://repo.maven.apache.org/maven2', setting: 'the default', mirrorOf: 'central' }
}
