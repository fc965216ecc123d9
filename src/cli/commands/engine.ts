import { tmpdir } from 'node:os'
import { loadImages } from '../../compute/compute.ts'
import { loadConfig } from '../../config/load.ts'
import { explanationOf } from '../../errors.ts'
import { selfCommand } from '../../runtime/self.ts'
import { makeTemporary } from '../../storage/data-directory.ts'
import { removeTree } from '../../storage/files.ts'
import { action, type Noun } from '../command.ts'
import { CommandError } from '../errors.ts'
import { flag, textOption } from '../options.ts'
import { versionInfo } from '../version.ts'

/** `berth engine` */
export const engineNoun: Noun = {
  name: 'engine',
  summary: 'prepare a Docker engine to run servers',
  description: 'Prepares the Docker engine that servers run on with --compute docker.',
  help: `
The image has berth's executable and its tools upon another image with glibc: one that is named, else a Debian or Ubuntu that
the engine has, else, for root on Debian, a root that debootstrap makes of Debian's packages. It needs no registry.

Examples:
  berth engine prepare                              upon an image that the engine has
  berth engine prepare --base node:22 --pull        with the tools of another image
  berth engine prepare --engine ssh://build.local --executable berth-linux-arm64
`,
  commands: [
    action({
      usage: 'prepare',
      description: 'make the image of servers, berth-server:VERSION, on the engine',
      access: 'none',
      json: 'the image and its engine, as JSON',
      options: {
        engine: textOption('ADDRESS', 'the engine, as for serve [BERTH_ENGINE]'),
        executable: textOption('FILE', "berth's executable for the engine's system, if it is not this one's"),
        image: textOption('FILE', 'load the image from this file of a release instead'),
        base: textOption('REF', 'the image to build upon'),
        pull: flag('let the engine pull that image if it does not have it'),
      },
      async run({ session: { context }, options, print }) {
        const { env, cwd, stderr } = context
        const config = loadConfig({
          flags: options.engine === undefined ? {} : { engine: options.engine },
          env,
          cwd,
        })
        const directory = makeTemporary(tmpdir(), 'berth-engine-')
        const { compiled, argv } = selfCommand()
        try {
          const { prepareEngine } = await loadImages()
          const prepared = await prepareEngine({
            ...{ config, variables: env, directory, version: versionInfo().version },
            executable: options.executable ?? (compiled ? argv[0] : null),
            image: options.image ?? null,
            base: options.base ?? null,
            pulls: options.pull ?? false,
            report: (line) => void stderr.write(`${line}\n`),
          })
          return await print(prepared, ({ image, engine }) => `${engine} has the image ${image}.\n`)
        } catch (error) {
          const explanation = explanationOf(error)
          throw explanation === null ? error : new CommandError(explanation)
        } finally {
          removeTree(directory)
        }
      },
    }),
  ],
}
