import { expect, test } from 'bun:test'
import { bypassesOf, readerOf } from '../../../src/hosting/registries/bypass.ts'

const of = (command: string, files: Record<string, string>) => {
  const read = async (path: string): Promise<Uint8Array> => {
    const text = files[path]
    if (text === undefined) throw new Error('missing')
    return new TextEncoder().encode(text)
  }
  const isOfBerth = async () => command.startsWith('own')
  return bypassesOf({ command, read: readerOf({ read }, 'app'), isOfBerth, mavenMirrorOf: 'central' })
}

const LOCK = { 'app/package-lock.json': '"resolved": "https://registry.npmjs.org/ms/-/ms-2.1.3.tgz"' }
const PAST = "past berth's relay of registries."

const wrapper = (version: string): string =>
  `# Apache Maven Wrapper startup batch script, version ${version}\n`
const CENTRAL =
  'distributionUrl=https://repo.maven.apache.org/maven2/org/apache/maven/apache-maven/3.9.11/a.zip\n'

test.each([
  ['npm ci', LOCK, []],
  [
    'npm ci',
    { 'app/package-lock.json': '"resolved": "https://npm.example/ms.tgz"' },
    [`npm asks npm.example itself, as package-lock.json says, ${PAST}`],
  ],
  ['bun install', LOCK, [`Bun asks registry.npmjs.org itself, as package-lock.json says, ${PAST}`]],
  ['bun install', { ...LOCK, 'app/bun.lock': '{}' }, []],
  [
    'yarn install --frozen-lockfile',
    { 'app/yarn.lock': 'ms@2:\n  resolved "https://registry.yarnpkg.com/ms.tgz#1"\n' },
    [`Yarn 1 asks registry.yarnpkg.com itself, as yarn.lock says, ${PAST}`],
  ],
  ['own yarn', { 'app/yarn.lock': 'ms@2:\n  resolved "https://registry.yarnpkg.com/ms.tgz#1"\n' }, []],
  [
    'yarn install',
    { 'app/yarn.lock': '__metadata:\n  version: 8\n"ms@npm:2":\n  resolution: "ms@npm:2.1.3"\n' },
    [],
  ],
  [
    'pnpm i',
    { 'app/pnpm-lock.yaml': 'resolution: {tarball: https://codeload.example/a}' },
    [`pnpm asks codeload.example itself, as pnpm-lock.yaml says, ${PAST}`],
  ],
  [
    'uv sync --frozen',
    { 'app/uv.lock': 'sdist = { url = "https://files.example/a.tar.gz" }' },
    [`uv asks files.example itself, as uv.lock says, ${PAST}`],
  ],
  ['pip install -r requirements.txt', LOCK, []],
  [
    'pip install -r requirements.txt',
    {
      'app/requirements.txt':
        '# see https://docs.example\n--index-url https://pypi.org/simple # https://a.example\n--extra-index-url https://ann@own.example/simple\na @ git+https://git.example/a\n',
    },
    [`pip asks git.example, own.example itself, as requirements.txt says, ${PAST}`],
  ],
  [
    'deno install --frozen\ndeno task build',
    {
      'app/deno.lock':
        '{"specifiers": {"jsr:@std/path@1": "1.0.8"}, "npm": {"ms@2": {"tarball": "https://registry.npmjs.org/ms.tgz"}}}',
      'app/deno.json': '{"imports": {"a": "https://deno.land/x/a/mod.ts"}}',
    },
    [`Deno asks jsr.io itself, as deno.lock says, ${PAST}`],
  ],
  [
    'deno task build',
    {
      'app/deno.json':
        '{"$schema": "https://a.example/s.json", "imports": {"a": "https://deno.land/x/a.ts"}}',
    },
    [`Deno asks deno.land itself, as deno.json says, ${PAST}`],
  ],
  [
    'cargo build --locked',
    {
      'app/Cargo.lock':
        'source = "registry+https://github.com/rust-lang/crates.io-index"\nsource = "git+https://git.example/a?rev=1#1"\n',
    },
    [`Cargo asks git.example itself, as Cargo.lock says, ${PAST}`],
  ],
  [
    'sh ./mvnw package',
    { 'app/mvnw': wrapper('3.1.1'), 'app/.mvn/wrapper/maven-wrapper.properties': CENTRAL },
    [
      `Maven's wrapper asks repo.maven.apache.org itself, as .mvn/wrapper/maven-wrapper.properties says, ${PAST}`,
    ],
  ],
  [
    'sh ./mvnw package',
    { 'app/mvnw': wrapper('3.3.2'), 'app/.mvn/wrapper/maven-wrapper.properties': CENTRAL },
    [],
  ],
  [
    'mvn package',
    {
      'app/pom.xml': `<repositories><repository><id>central</id><url>https://a.example/m2</url></repository>
        <repository><id>own</id><url>https://own.example/m2</url></repository></repositories>
        <distributionManagement><repository><url>https://b.example/m2</url></repository></distributionManagement>`,
    },
    [`Maven asks own.example itself, as pom.xml says, ${PAST}`],
  ],
  [
    'sh ./gradlew build',
    {
      'app/gradle/wrapper/gradle-wrapper.properties':
        'distributionUrl=https\\://services.gradle.org/distributions/gradle-9.3.1-bin.zip\n',
    },
    [
      `Gradle's wrapper asks services.gradle.org itself, as gradle/wrapper/gradle-wrapper.properties says, ${PAST}`,
    ],
  ],
  [
    'gradle installDist',
    {
      'app/settings.gradle': 'pluginManagement { repositories { gradlePluginPortal(); google() } }',
      'app/build.gradle':
        "repositories { mavenCentral()\nmaven { url 'https://own.example/m2' }\n// maven { url 'https://a.example' }\n}",
    },
    [
      `Gradle asks dl.google.com itself, as settings.gradle says, ${PAST}`,
      `Gradle asks own.example itself, as build.gradle says, ${PAST}`,
    ],
  ],
  [
    'composer install --no-dev',
    {
      'app/composer.lock': `{\n    "packages": [{"funding": [{"url": "https://fund.example"}], "require": {},
        "dist": {\n "type": "zip",\n "url": "https://api.github.com/repos/a"}}]}`,
    },
    [`Composer asks api.github.com itself, as composer.lock says, ${PAST}`],
  ],
  [
    'composer install',
    { 'app/composer.json': '{\n    "require": {}\n}' },
    [
      `Composer asks repo.packagist.org (for archives mostly api.github.com) itself, as composer.json says, ${PAST}`,
    ],
  ],
  [
    'bundle install',
    { 'app/Gemfile': "source 'https://own.example'\ngem 'a', github: 'a/a'\n" },
    [`Bundler asks github.com, own.example itself, as Gemfile says, ${PAST}`],
  ],
] as [string, Record<string, string>, string[]][])(
  '%s: what goes past the relay is named',
  async (command, files, expected) => {
    expect(await of(command, files)).toEqual(expected)
  },
)
