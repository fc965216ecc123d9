import { tmpdir } from 'node:os'
import { type EngineChoice, loadImages } from '../../compute/compute.ts'
import { loadConfig } from '../../config/load.ts'
import { explanationOf } from '../../errors.ts'
import { selfCommand } from '../../runtime/self.ts'
import { makeTemporary } from '../../storage/data-directory.ts'
import { removeTree } from '../../storage/files.ts'
import { action, type Noun } from '../command.ts'
import { CommandError } from '../errors.ts'
import { flag, textOption } from '../options.ts'
import type { ProcessContext } from '../process-context.ts'
import { showWhile } from '../status-line.ts'
import { versionInfo } from '../version.ts'

const ENGINE = textOption('ADDRESS', 'the engine, as for serve [BERTH_ENGINE]')

/** `berth engine` */
export const engineNoun: Noun = {
  name: 'engine',
  summary: 'prepare a Docker engine to run servers',
  description:
    'Prepares the Docker engine that servers run on with --compute docker. Plain "berth engine" shows it.',
  help: `
The image has berth's executable and its tools upon another image with glibc:
one that is named, else a Debian or Ubuntu that the engine has, else, for root
on Debian, a root that debootstrap makes of Debian's packages. It needs no
registry.

Examples:
  berth engine prepare                        upon an image that the engine has
  berth engine prepare --base node:22 --pull  with the tools of another image
  berth engine prepare --engine ssh://build.local --executable berth-linux-arm64
`,
  commands: [
    action({
      usage: 'get',
      aliases: ['show'],
      description: 'show the engine, and whether it has the image of servers',
      access: 'none',
      json: 'the engine and its image, as JSON',
      options: { engine: ENGINE },
      run: ({ session: { context }, options, print }) =>
        withEngine(context, options.engine, async (choice) => {
          const { describeEngine } = await loadImages()
          const engine = await showWhile(context.stderr, 'ask the engine', () => describeEngine(choice))
          return print(engine, ({ name, description, platform, image, hasImage }) =>
            [
              `${name} is ${description} on ${platform}.`,
              hasImage ? `It has the image ${image}.` : `It has no image ${image}: berth engine prepare`,
              '',
            ].join('\n'),
          )
        }),
    }),
    action({
      usage: 'prepare',
      description: 'make the image of servers, berth-server:VERSION, on the engine',
      access: 'none',
      json: 'the image and its engine, as JSON',
      options: {
        engine: ENGINE,
        executable: textOption('FILE', "berth's executable for the engine, if not this one"),
        image: textOption('FILE', 'load the image from this file of a release instead'),
        base: textOption('REF', 'the image to build upon'),
        pull: flag('let the engine pull that image if it does not have it'),
      },
      run: ({ session: { context }, options, print }) =>
        withEngine(context, options.engine, async (choice) => {
          const { compiled, argv } = selfCommand()
          const { prepareEngine } = await loadImages()
          const prepared = await prepareEngine({
            ...choice,
            executable: options.executable ?? (compiled ? argv[0] : null),
            image: options.image ?? null,
            base: options.base ?? null,
            pulls: options.pull ?? false,
            report: (line) => void context.stderr.write(`${line}\n`),
          })
          return print(prepared, ({ image, engine }) => `${engine} has the image ${image}.\n`)
        }),
    }),
  ],
}

/** Calls a function with what says which engine a person means. Explains what fails. */
async function withEngine<T>(
  { env, cwd }: ProcessContext,
  address: string | undefined,
  act: (choice: EngineChoice) => Promise<T>,
): Promise<T> {
  const config = loadConfig({ flags: address === undefined ? {} : { engine: address }, env, cwd })
  const directory = makeTemporary(tmpdir(), 'berth-engine-')
  try {
    return await act({ config, variables: env, directory, version: versionInfo().version })
  } catch (error) {
    const explanation = explanationOf(error)
    throw explanation === null ? error : new CommandError(explanation)
  } finally {
    removeTree(directory)
  }
}
