import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type ClientLanguage, execute, Missing, once } from './language.ts'

/** What generates, builds and checks. */
const TOOLS = [
  'attrs==26.1.0',
  'hatchling==1.33.0',
  'httpx==0.28.1',
  'mypy==2.4.1',
  'openapi-python-client==0.29.1',
  'pytest==9.2.0',
  'unasync==0.6.0',
]

/** How openapi-python-client writes: no class for an enum, and no tools that rewrite its output. */
const CONFIGURATION = { literal_enums: true, post_hooks: [], package_name_override: '_generated' }

/** The oldest Python that the tools take. The package itself takes the same. */
const OLDEST = [3, 10] as const

/** The Python client: one wheel, with an async half that is written by hand and a sync half that is made of it. */
export const python: ClientLanguage = {
  name: 'python',
  title: 'Python',
  outputs: ['python'],

  async generate({ document, source, cache }) {
    await install(cache)
    const configuration = join(cache, 'openapi-python-client.json')
    writeFileSync(configuration, JSON.stringify(CONFIGURATION))
    const generated = join(source, 'src/berth/_generated')
    rmSync(generated, { recursive: true, force: true })
    const printed = await execute(
      [
        ...[
          program(cache, 'openapi-python-client'),
          'generate',
          '--path',
          document,
          '--config',
          configuration,
        ],
        ...['--meta', 'none', '--output-path', generated, '--fail-on-warning'],
      ],
      { cwd: cache },
    )
    if (/warning/i.test(printed)) throw new Error(printed)
    await execute([program(cache, 'python'), join(import.meta.dir, 'python_parts.py'), source], {
      cwd: cache,
    })
  },

  async build({ source, cache, output, version }) {
    const manifest = join(source, 'pyproject.toml')
    writeFileSync(manifest, readFileSync(manifest, 'utf8').replaceAll('0.0.0', version))
    await execute([program(cache, 'mypy')], { cwd: source })
    await execute([program(cache, 'hatchling'), 'build', '--directory', join(output, 'python')], {
      cwd: source,
      // Files of a wheel have the time of the build otherwise.
      env: { SOURCE_DATE_EPOCH: '315532800' },
    })
  },
}

const program = (cache: string, name: string): string => join(cache, 'venv/bin', name)

/** Fetches the tools from PyPI into an environment of their own. */
async function install(cache: string): Promise<void> {
  const python = await findPython()
  await once(cache, JSON.stringify(TOOLS), async () => {
    rmSync(join(cache, 'venv'), { recursive: true, force: true })
    try {
      await execute([python, '-m', 'venv', join(cache, 'venv')], { cwd: cache })
      const pip = [program(cache, 'python'), '-m', 'pip', '--disable-pip-version-check', 'install', '--quiet']
      await execute([...pip, ...TOOLS], { cwd: cache })
    } catch (error) {
      throw new Missing(`its tools cannot be fetched: ${(error as Error).message}`)
    }
  })
}

/** Returns a Python that is new enough. */
async function findPython(): Promise<string> {
  const python = Bun.which('python3')
  if (!python) throw new Missing('python3 is not installed.')
  const [major, minor] = OLDEST
  const check = `import sys, venv; sys.exit(sys.version_info < (${major}, ${minor}))`
  await execute([python, '-c', check], { cwd: '/' }).catch(() => {
    throw new Missing(`python3 is older than ${major}.${minor}, or lacks venv.`)
  })
  return python
}
