import { action } from '../command.ts'
import { flag } from '../options.ts'
import { versionInfo } from '../version.ts'

/** `berth version` */
export const version = action({
  usage: 'version',
  summary: 'print the version',
  description: 'Prints the version (also "berth --version").',
  access: 'none',
  json: 'version, bun, platform and commit as JSON',
  run: ({ print }) =>
    print(versionInfo(), ({ version, bun, platform, commit }) => {
      const from = commit ? `, commit ${commit}` : ''
      return `berth ${version} (Bun ${bun}, ${platform}${from})\n`
    }),
})

/** `berth openapi` */
export const openapi = action({
  usage: 'openapi',
  summary: "print the API's OpenAPI document",
  description: "Prints the API's OpenAPI 3.1 document. No instance has to run.",
  access: 'none',
  json: null,
  options: { control: flag('that of the control API, by which tests steer an instance') },
  async run({ session, options: { control } }) {
    const { describeApi, describeControl } = await import('../../instance/describe.ts')
    const document = await (control ? describeControl() : describeApi())
    await session.context.stdout.write(`${JSON.stringify(document, null, 2)}\n`)
  },
})
