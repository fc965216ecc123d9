import type { Command } from 'commander'
import type { Session } from '../session.ts'

interface Options {
  control?: boolean
}

/** Adds `openapi`. */
export function registerOpenApi(program: Command, session: Session): void {
  program
    .command('openapi')
    .description("Prints the API's OpenAPI 3.1 document. No instance has to run.")
    .summary("print the API's OpenAPI document")
    .option('--control', 'that of the control API, by which tests steer an instance')
    .action(async ({ control }: Options) => {
      const { describeApi, describeControl } = await import('../../instance/describe.ts')
      const document = await (control ? describeControl() : describeApi())
      await session.terminal.stdout.write(`${JSON.stringify(document, null, 2)}\n`)
    })
}
