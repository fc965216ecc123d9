import { existsSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type ClientLanguage, execute, Missing, once } from './language.ts'

/** What generates, compiles and checks. `openapi-fetch` is what the package itself depends on. */
const TOOLS = {
  '@arethetypeswrong/cli': '0.18.5',
  '@types/node': '20.19.9',
  'openapi-fetch': '0.17.0',
  'openapi-typescript': '7.13.0',
  publint: '0.3.25',
  typescript: '5.9.3',
}

/** The TypeScript client: ES modules and CommonJS, each with its types, in one npm package. */
export const typescript: ClientLanguage = {
  name: 'typescript',
  title: 'TypeScript',
  outputs: ['typescript'],

  async generate({ document, source, cache }) {
    await install(cache)
    const generated = join(source, 'src/generated')
    rmSync(generated, { recursive: true, force: true })
    mkdirSync(generated, { recursive: true })
    const target = join(generated, 'schema.ts')
    await execute([program(cache, 'openapi-typescript'), document, '--output', target], { cwd: cache })
    // Editors find there what the source imports.
    const modules = join(source, 'node_modules')
    if (!existsSync(modules)) symlinkSync(join(cache, 'node_modules'), modules)
  },

  async build({ source, cache, output, version }) {
    const manifest = await Bun.file(join(source, 'package.json')).json()
    const write = (type: 'module' | 'commonjs'): void =>
      writeFileSync(join(source, 'package.json'), JSON.stringify({ ...manifest, version, type }, null, 2))
    writeFileSync(join(source, 'src/version.ts'), versionModule(version))
    for (const [type, directory] of [
      ['commonjs', 'cjs'],
      ['module', 'esm'],
    ] as const) {
      write(type)
      const target = join(source, 'dist', directory)
      await execute([program(cache, 'tsc'), '--project', source, '--outDir', target], { cwd: source })
      writeFileSync(join(target, 'package.json'), `${JSON.stringify({ type })}\n`)
    }
    await execute(['npm', 'pack', '--ignore-scripts', '--pack-destination', join(output, 'typescript')], {
      cwd: source,
    })
    const [tarball = ''] = new Bun.Glob('*.tgz').scanSync(join(output, 'typescript'))
    const packed = join(output, 'typescript', tarball)
    await execute([program(cache, 'publint'), '--strict', packed], { cwd: cache })
    await execute([program(cache, 'attw'), '--profile', 'node16', packed], { cwd: cache })
  },
}

/** The module that has the version of the package. */
const versionModule = (version: string): string =>
  `/** The version of this package, which is that of the berth that it was made with. */\nexport const VERSION = ${JSON.stringify(version)}\n`

const program = (cache: string, name: string): string => join(cache, 'node_modules/.bin', name)

/** Fetches the tools from npm's registry. */
async function install(cache: string): Promise<void> {
  if (!Bun.which('npm')) throw new Missing('npm is not installed.')
  await once(cache, JSON.stringify(TOOLS), async () => {
    writeFileSync(join(cache, 'package.json'), JSON.stringify({ private: true, dependencies: TOOLS }))
    const fetched = ['npm', 'install', '--no-audit', '--no-fund', '--no-package-lock', '--ignore-scripts']
    await execute([...fetched, '--loglevel=error'], { cwd: cache }).catch((error: Error) => {
      throw new Missing(`its tools cannot be fetched: ${error.message}`)
    })
  })
}
