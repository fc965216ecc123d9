import { resolve } from 'node:path'
import { UsageError } from '../../errors.ts'
import type { Client } from '../client.ts'
import { CommandError } from '../errors.ts'
import { flag, text } from '../options.ts'
import { count, printable } from '../output.ts'
import type { ProcessContext } from '../process-context.ts'
import { action } from '../runner.ts'

/** `berth deploy` */
export const deploy = action({
  usage: 'deploy [DIR]',
  summary: "publish a server's workspace under a URL",
  description: "Publishes a server's workspace under a URL, with the files of a directory of yours.",
  access: 'api',
  options: {
    server: text('SERVER', 'the server; needed where there are several'),
    clean: flag('remove what is in the workspace and not in DIR; the directories of projects stay'),
  },
  help: `
Without DIR the workspace is published as it is: an app where one is found, else its files. With DIR the
directory's files are written into it first, but for .git, node_modules, what .gitignore files name, and .env
files: "berth secrets import .env" sets the variables in them. Publishing again keeps the URL.

Examples:
  berth deploy .
  berth deploy dist --clean
`,
  async run({ session, args: [directory], options, connect, server, print }) {
    if (options.clean && directory === undefined)
      throw new UsageError('--clean removes what DIR does not have: name the directory.')
    const client = await connect()
    const serverId = await server()
    const sent =
      directory === undefined
        ? {}
        : { files: await upload(session.context, client, serverId, directory, options.clean) }
    const published = await client.call('deployments.create', { params: { serverId } })
    await print({ ...published, ...sent }, ({ url }) => `Published ${serverId} at ${url}\n`)
  },
})

/** Writes a directory into the workspace. Resolves to the number of its files. */
async function upload(
  { stderr, cwd }: ProcessContext,
  client: Client,
  server: string,
  directory: string,
  clean = false,
): Promise<number> {
  const [{ surveyDirectory }, { leftOutText, sizeOf }, { removeOthers, uploadDirectory }] = await Promise.all(
    [import('../directory/survey.ts'), import('../directory/report.ts'), import('../directory/upload.ts')],
  )
  const survey = await surveyDirectory(resolve(cwd, directory))
  const leftOut = leftOutText(survey, 'berth secrets import')
  if (survey.files.length === 0) throw new CommandError(`${directory} has no file to send. ${leftOut}`.trim())
  if (clean) {
    const removed = await removeOthers(client, server, survey)
    if (removed > 0) await stderr.write(`Removed ${count(removed, 'other file')} from ${server}.\n`)
  }
  await uploadDirectory(client, server, survey)
  await stderr.write(`Uploaded ${printable(directory)}: ${sizeOf(survey)}.\n${leftOut}`)
  return survey.files.length + survey.links.length
}
