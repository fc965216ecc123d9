import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { LocalWorkspace } from '../../../src/compute/local/workspace.ts'
import { installEnvironment } from '../../../src/hosting/registries/environment.ts'

const ACCESS = {
  paths: { tools: '/opt/berth', home: '/workspace', caches: '/caches' },
  origin: 'http://127.0.0.1:4873',
  token: 'T',
  machine: { mounts: [], goProxy: '{go},direct', mavenMirrorOf: 'central' },
}

async function environment(files: Record<string, string>, directory = 'projects/app') {
  const read = async (path: string): Promise<Uint8Array> => {
    const text = files[path]
    if (text === undefined) throw new Error('missing')
    return new TextEncoder().encode(text)
  }
  return installEnvironment({ ...ACCESS, workspace: { read }, directory })
}

const mirrored = (env: Record<string, string>) => ({
  npm: env.npm_config_globalconfig !== undefined,
  pnpm: env.pnpm_config_npmrc_auth_file !== undefined,
  bun: env.BUN_CONFIG_REGISTRY !== undefined && env.BUN_CONFIG_TOKEN !== undefined,
  yarn: env.YARN_NPM_REGISTRY_SERVER !== undefined && env.YARN_NPM_AUTH_TOKEN !== undefined,
})
const ALL = { npm: true, pnpm: true, bun: true, yarn: true }

test('every package manager of JavaScript is sent to the relay, with the credential in no address', async () => {
  const env = await environment({})
  expect(mirrored(env)).toEqual(ALL)
  const ofJavaScript = Object.entries(env).filter(([name]) =>
    /^(?:BERTH_PACKAGES_URL|COREPACK|BUN|YARN)/.test(name),
  )
  for (const [, value] of ofJavaScript) if (value.includes('://')) expect(value).not.toContain('T')
})

test.each([
  ['projects/app/.npmrc', 'registry=https://npm.example/\n', { bun: false }],
  ['projects/app/.npmrc', '; registry=x\n@s:registry=https://npm.example/\n', {}],
  ['projects/.npmrc', 'registry = https://npm.example/\n', { bun: false }],
  ['.npmrc', 'registry=https://npm.example/\n', { bun: false, pnpm: false }],
  ['.npmrc', '//npm.example/:_authToken=secret\n', { pnpm: false }],
  ['projects/app/bunfig.toml', '[install]\nregistry = "https://npm.example"\n', { bun: false }],
  ['projects/app/bunfig.toml', '[install.registry]\nurl = "https://npm.example"\n', { bun: false }],
  ['projects/app/bunfig.toml', '[install.scopes]\n"@s" = "https://npm.example"\n', {}],
  ['projects/app/bunfig.toml', 'no = = toml', {}],
  ['.bunfig.toml', '[install]\nregistry = "https://npm.example"\n', { bun: false }],
  ['projects/app/.yarnrc.yml', 'npmRegistryServer: "https://npm.example"\n', { yarn: false }],
  ['projects/app/.yarnrc.yml', 'npmScopes:\n  s:\n    npmRegistryServer: "https://npm.example"\n', {}],
  ['projects/other/.npmrc', 'registry=https://npm.example/\n', {}],
  ['projects/app/bunfig.toml', '[install]\nregistry = "https://registry.npmjs.org/"\n', {}],
  ['projects/app/.yarnrc.yml', 'npmRegistryServer: "https://registry.yarnpkg.com"\n', {}],
])('%s with %j', async (path, text, difference) => {
  expect(mirrored(await environment({ [path]: text }))).toEqual({ ...ALL, ...difference })
})

test('a project that names the public registry is sent to the relay, and one that names another besides is not', async () => {
  const named = async (files: Record<string, string>) => (await environment(files)).npm_config_registry
  const names = { 'projects/app/.npmrc': 'registry = "https://registry.npmjs.org/"\nlockfile-version=3\n' }
  expect(await named(names)).toBe(`${ACCESS.origin}/`)
  expect(mirrored(await environment(names))).toEqual(ALL)
  expect(await named({})).toBeUndefined()
  expect(await named({ ...names, 'projects/.npmrc': 'registry=https://npm.example/' })).toBeUndefined()
})

test.each([
  ['3.3.2', 'https://repo1.maven.org', true],
  // It drops the path of the relay.
  ['3.1.1', 'https://repo1.maven.org', false],
  ['3.3.2', 'https://own.example', false],
])('Maven’s wrapper %s of %s takes Maven from the relay: %p', async (version, host, expected) => {
  const env = await environment({
    'projects/app/mvnw': `# Apache Maven Wrapper startup batch script, version ${version}\n`,
    'projects/app/.mvn/wrapper/maven-wrapper.properties': `distributionUrl=${host}/maven2/org/apache/maven/a.zip\n`,
  })
  expect(env.MVNW_REPOURL === `${ACCESS.origin}/-/T/maven`).toBe(expected)
})

test('settings of any size that take no disk are not read', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'berth-settings-'))
  try {
    for (const name of ['.npmrc', 'bunfig.toml', '.yarnrc.yml']) {
      writeFileSync(join(folder, name), 'registry=https://npm.example/\n')
      truncateSync(join(folder, name), 3 * 2 ** 30)
    }
    const before = process.memoryUsage.rss()
    const env = await installEnvironment({
      ...ACCESS,
      workspace: new LocalWorkspace(folder),
      directory: '',
    })
    expect(process.memoryUsage.rss() - before).toBeLessThan(500 * 2 ** 20)
    expect(mirrored(env)).toEqual(ALL)
  } finally {
    rmSync(folder, { recursive: true })
  }
})
