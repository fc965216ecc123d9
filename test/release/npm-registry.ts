import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { until } from '../support/processes.ts'
import { owner, release, root, version } from './facts.ts'
import type { Machine } from './support.ts'

/** A registry of npm that runs here, at a version that Node.js 18 and later run. */
const VERDACCIO = '6.1.6'

/** Installs the registry below node_modules, once, and returns its program. */
async function installVerdaccio(machine: Machine): Promise<string> {
  const place = join(root, `node_modules/.cache/verdaccio-${VERDACCIO}`)
  const program = join(place, 'node_modules/verdaccio/bin/verdaccio')
  if (existsSync(program)) return program
  mkdirSync(place, { recursive: true })
  const manifest = {
    private: true,
    dependencies: { verdaccio: VERDACCIO },
    // It names a tag, which registries need not have.
    overrides: { 'node-fetch': '2.7.0' },
  }
  writeFileSync(join(place, 'package.json'), JSON.stringify(manifest))
  await machine.output(
    ['npm', 'install', '--silent', '--no-audit', '--no-fund', '--ignore-scripts', '--no-package-lock'],
    { cwd: place, env: { HOME: process.env.HOME ?? '' } },
  )
  return program
}

/**
 * Starts a registry of npm's packages, publishes those of the release for this machine there, and has the machine use it.
 *
 * @param start starts a program that ends by SIGKILL
 * @param within first words of a command that reaches what it has started
 */
export async function startNpmRegistry(
  machine: Machine,
  port: number,
  start: (command: readonly string[]) => Bun.Subprocess,
  within: readonly string[] = [],
): Promise<Bun.Subprocess> {
  const program = await installVerdaccio(machine)
  const place = join(machine.path, 'registry')
  mkdirSync(place)
  const config = join(place, 'config.yaml')
  writeFileSync(
    config,
    `storage: ./storage
auth: { htpasswd: { file: ./htpasswd } }
packages: { '**': { access: $all, publish: $authenticated } }
max_body_size: 200mb
log: { type: stdout, format: json, level: warn }
`,
  )
  const url = `http://127.0.0.1:${port}`
  const registry = start(['node', program, '--config', config, '--listen', `127.0.0.1:${port}`])
  const curl = (...args: string[]) => machine.run([...within, 'curl', '-sf', ...args])
  await until(async () => (await curl(`${url}/-/ping`)).exitCode === 0, 'the registry', 60_000)
  const user = JSON.stringify({ name: 'berth', password: 'of-this-test' })
  const sent = ['-X', 'PUT', '-H', 'content-type: application/json', '-d', user]
  const { token } = JSON.parse((await curl(`${url}/-/user/org.couchdb.user:berth`, ...sent)).stdout)
  writeFileSync(join(machine.path, '.npmrc'), `registry=${url}/\n//127.0.0.1:${port}/:_authToken=${token}\n`)
  machine.env.npm_config_registry = `${url}/`
  // Those of other systems take half a minute each, and npm does without what is optional and missing.
  for (const name of [`${owner}-berth-linux-x64-${version}.tgz`, `${owner}-berth-${version}.tgz`])
    await machine.output([...within, 'npm', 'publish', '--silent', join(release, 'npm', name)])
  return registry
}
