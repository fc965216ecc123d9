import { action } from '../command.ts'
import { CommandError } from '../errors.ts'
import { listenForStopSignal } from '../interrupt.ts'
import { flag, textOption } from '../options.ts'
import { paint } from '../output.ts'
import { STRICT } from '../projects/report.ts'
import type { ProjectFile } from '../up/berth-yaml.ts'
import type { UpInstance } from '../up/instance.ts'

const FILE = {
  ...textOption('FILE', 'the file, in place of berth.yaml of this directory or above'),
  short: 'f',
}

/** `berth up` */
export const up = action({
  usage: 'up',
  summary: 'bring up what berth.yaml declares, and follow its logs',
  description:
    'Brings up what berth.yaml declares: servers, projects with their code, secrets, keys and webhooks. Follows the logs of the apps and takes all down on Ctrl-C. Starts an instance if none runs on this directory.',
  access: 'control',
  json: null,
  options: {
    file: FILE,
    detach: flag('return when all is up, and leave it running until "berth down"', { short: 'd' }),
    strict: flag(STRICT),
    watch: flag('send directories again after each change', { short: 'w', conflicts: 'detach' }),
  },
  help: `
Examples of a berth.yaml:
  projects:
    shop:
      directory: .
      visibility: public
      secrets: { STRIPE_KEY: { env: STRIPE_KEY } }

"berth guide up" explains every field.
`,
  async run({ session, options }) {
    const [{ readProjectFile }, { findOrStart }, { UpProjects }] = await Promise.all([
      import('../up/berth-yaml.ts'),
      import('../up/instance.ts'),
      import('../up/bring-up.ts'),
    ])
    const { context } = session
    const file = await readProjectFile(options.file, context)
    const signal = listenForStopSignal()
    // Without a terminal the signal may be ignored on purpose (nohup).
    if (context.stdout.isTTY) signal.handleHangup()
    const interrupted = new AbortController()
    void signal.received.then(() => interrupted.abort())
    const isDetached = options.detach === true
    const instance = await findOrStart({ connection: options, root: file.root, isDetached, signal }, context)
    if (typeof instance === 'number') return instance
    try {
      const { fixtures } = await instance.control.call('control.fixtures.apply', {
        body: file.request as never,
      })
      const projects = new UpProjects(session, instance.api, file, fixtures, options.strict)
      const exitCode = await projects.bringUp(interrupted.signal)
      if (isDetached) return exitCode
      const { stderr } = context
      await stderr.write(paint(stderr, 'dim', 'Following the logs. Ctrl-C takes all down.\n'))
      await projects.follow(options.watch === true, interrupted.signal)
      if (options.strict) return exitCode
    } catch (error) {
      if (!interrupted.signal.aborted) throw error
    } finally {
      if (!isDetached) await takeDown(instance, file, session.context.stderr.write)
    }
    return 0
  },
})

/** Ends the instance if it is this process's own; else puts the servers of the file to sleep. */
async function takeDown(
  { control, api, stop }: UpInstance,
  file: ProjectFile,
  write: (text: string) => Promise<void>,
): Promise<void> {
  await write('\nTaking all down; once more to exit at once.\n')
  if (stop) return stop()
  const { stopServers } = await import('../up/take-down.ts')
  await stopServers(control, api, file)
}

/** `berth down` */
export const down = action({
  usage: 'down',
  summary: 'take down what "berth up" has brought up',
  description:
    'Puts the servers of berth.yaml to sleep, with their files, and stops the instance if "berth up --detach" has started it.',
  access: 'control',
  json: null,
  options: { file: FILE, delete: flag('delete what the file has made, files included') },
  async loss({ options, session: { context } }) {
    if (!options.delete) return null
    const { readProjectFileNames } = await import('../up/berth-yaml.ts')
    const { path } = await readProjectFileNames(options.file, context)
    return `All that ${path} has made is deleted, the files of its servers included.`
  },
  async run({ session, options }) {
    const [
      { readProjectFileNames },
      { deleteMade, stopServers, stopOwnInstance },
      { isInstanceRunning },
      { findInstance },
      { Client },
    ] = await Promise.all([
      import('../up/berth-yaml.ts'),
      import('../up/take-down.ts'),
      import('../up/instance.ts'),
      import('../find-instance.ts'),
      import('../client.ts'),
    ])
    const { context } = session
    const file = await readProjectFileNames(options.file, context)
    const inRoot = { ...context, cwd: file.root }
    if (!isInstanceRunning(options, inRoot)) {
      if (options.delete)
        throw new CommandError(
          'No berth runs here, and what is deleted needs one. Start it with: berth serve --detach',
        )
      await context.stdout.write('Nothing of the file is up: no berth runs here.\n')
      return 0
    }
    const control = new Client(findInstance(options, inRoot, 'control'))
    const api = new Client(findInstance(options, inRoot, 'api'))
    const said = options.delete ? await deleteMade(control, api, file) : await stopServers(control, api, file)
    for (const line of said) await context.stdout.write(`${line}\n`)
    if (await stopOwnInstance(options, inRoot)) await context.stdout.write('The instance is stopped.\n')
    else if (said.length === 0) await context.stdout.write('Nothing of the file is up.\n')
    return 0
  },
})
