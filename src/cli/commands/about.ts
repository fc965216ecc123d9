import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { UsageError } from '../../errors.ts'
import { action } from '../command.ts'
import { CommandError } from '../errors.ts'
import { flag } from '../options.ts'
import { versionInfo } from '../version.ts'

/** `berth version` */
export const version = action({
  usage: 'version',
  summary: 'print the version',
  description: 'Prints the version (also "berth --version").',
  access: 'none',
  json: 'version, commit, schema, bun, system, libc and installed_by as JSON',
  async run({ options, print }) {
    const { version: berth, commit, bun, system } = versionInfo()
    if (!options.json) {
      const from = commit ? `, commit ${commit}` : ''
      return print(null, () => `berth ${berth} (Bun ${bun}, ${system}${from})\n`)
    }
    const [{ SCHEMA }, { installerOf, libcOf }] = await Promise.all([
      import('../../storage/database.ts'),
      import('../installation.ts'),
    ])
    const installed_by = installerOf(process.execPath)?.name ?? null
    const facts = { schema: SCHEMA, bun, system, libc: libcOf(process.platform), installed_by }
    return print({ version: berth, commit, ...facts }, () => '')
  },
})

/** `berth licenses` */
export const licenses = action({
  usage: 'licenses',
  summary: 'print the licences of berth and of what it contains',
  description:
    'Prints the licences of berth, of Bun with what it links, and of every library in the executable.',
  access: 'none',
  json: null,
  async run({ session }) {
    // In the executable it is beside the code (see scripts/packaging/executable.ts).
    if (!import.meta.dir.startsWith('/$bunfs/'))
      throw new CommandError(
        'berth runs from source, where each library has its licence in node_modules. Build the executable with scripts/build to have them in one text.',
      )
    const packed = readFileSync(join(import.meta.dir, 'licenses/licenses.txt.gz'))
    await session.context.stdout.write(new TextDecoder().decode(Bun.gunzipSync(packed)))
  },
})

/** `berth openapi` */
export const openapi = action({
  usage: 'openapi',
  summary: "print the API's OpenAPI document",
  description:
    "Prints the API's OpenAPI 3.1 document. No instance has to run. With --all it is one document of both APIs, from which generators make whole clients.",
  access: 'none',
  json: null,
  options: {
    control: flag('that of the control API, by which tests steer an instance'),
    all: flag('both APIs in one document, as generators of clients need it'),
  },
  async run({ session, options: { control, all } }) {
    if (control && all) throw new UsageError('Use --control or --all, not both.')
    const [{ describeAll, describeApi, describeControl }, { printed }] = await Promise.all([
      import('../../instance/describe.ts'),
      import('../../contract/openapi/merge.ts'),
    ])
    const document = all ? await describeAll() : printed(await (control ? describeControl() : describeApi()))
    await session.context.stdout.write(`${JSON.stringify(document, null, 2)}\n`)
  },
})
