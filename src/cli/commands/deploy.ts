import { resolve } from 'node:path'
import type { Command } from 'commander'
import { UsageError } from '../../errors.ts'
import type { Deployment, PublishedDeployment } from '../../resources/deployments/model.ts'
import { chooseServer } from '../choose-server.ts'
import type { Client } from '../client.ts'
import { CommandError } from '../errors.ts'
import { count } from '../format.ts'
import type { ConnectionOptions } from '../instance.ts'
import { printable, table } from '../output.ts'
import { path } from '../path.ts'
import { connect, printJson, type Session, withConnection, withJson } from '../session.ts'

interface Options extends ConnectionOptions {
  json?: boolean
  server?: string
  clean?: boolean
}

const MORE = `
Without DIR the workspace is published as it is: an app where one is found, else its files. With DIR the
folder's files are written into it first, but for .git, node_modules, what .gitignore files name, and .env
files: "berth secrets import .env" sets the variables in them. Publishing again keeps the URL.

Examples:
  berth deploy .
  berth deploy dist --clean
`

/** Adds `deploy` and `deployments`. */
export function registerDeploy(program: Command, session: Session): void {
  const { stdout } = session.terminal
  const deploy = program
    .command('deploy [DIR]')
    .summary("publish a server's workspace under a URL")
    .description("Publishes a server's workspace under a URL, with the files of a folder of yours.")
    .option('--server <SERVER>', 'the server; needed where there are several')
    .option('--clean', 'remove what is in the workspace and not in DIR; the folders of projects stay')
    .addHelpText('after', MORE)
  withConnection(withJson(deploy)).action(async (folder: string | undefined, options: Options) => {
    if (options.clean && folder === undefined)
      throw new UsageError('--clean removes what DIR does not have: name the folder.')
    const client = await connect(session, options)
    const server = await chooseServer(client, options.server)
    const files = folder === undefined ? undefined : await send(session, client, server, folder, options)
    const published = await client.request<PublishedDeployment>('POST', path`/servers/${server}/deployments`)
    if (options.json) return printJson(session, files === undefined ? published : { ...published, files })
    await stdout.write(`Published ${server} at ${published.url}\n`)
  })

  const deployments = program
    .command('deployments')
    .summary('list what a server publishes')
    .description('Lists what a server publishes.')
    .option('--server <SERVER>', 'the server; needed where there are several')
  withConnection(withJson(deployments)).action(async (options: Options) => {
    const client = await connect(session, options)
    const server = await chooseServer(client, options.server)
    const answer = await client.request<{ deployments: Deployment[] }>(
      'GET',
      path`/servers/${server}/deployments`,
    )
    if (options.json) return printJson(session, answer)
    if (answer.deployments.length === 0)
      return stdout.write(`${server} publishes nothing yet. Publish its workspace with "berth deploy".\n`)
    await stdout.write(
      table(
        stdout,
        [
          { heading: 'URL', cell: ({ url }) => url },
          {
            heading: 'STATUS',
            cell: ({ live }) => (live ? 'live' : 'not live'),
            style: ({ live }) => (live ? 'green' : 'dim'),
          },
        ],
        answer.deployments,
      ),
    )
  })
}

/** Writes a folder into the workspace; resolves to the number of its files. */
async function send(
  session: Session,
  client: Client,
  server: string,
  folder: string,
  { clean }: Options,
): Promise<number> {
  const { stderr, cwd } = session.terminal
  const [{ surveyFolder }, { leftOutText, sizeOf }, { removeOthers, uploadFolder }] = await Promise.all([
    import('../folder/survey.ts'),
    import('../folder/report.ts'),
    import('../folder/upload.ts'),
  ])
  const survey = await surveyFolder(resolve(cwd, folder))
  const leftOut = leftOutText(survey, 'berth secrets import')
  if (survey.files.length === 0) throw new CommandError(`${folder} has no file to send. ${leftOut}`.trim())
  if (clean) {
    const removed = await removeOthers(client, server, survey)
    if (removed > 0) await stderr.write(`Removed ${count(removed, 'other file')} from ${server}.\n`)
  }
  await uploadFolder(client, server, survey)
  await stderr.write(`Uploaded ${printable(folder)}: ${sizeOf(survey)}.\n${leftOut}`)
  return survey.files.length + survey.links.length
}
