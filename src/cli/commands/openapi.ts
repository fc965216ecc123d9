import type { Command } from 'commander'
import type { Session } from '../session.ts'

/** Adds `openapi`. */
export function registerOpenApi(program: Command, session: Session): void {
  program
    .command('openapi')
    .description("Prints the API's OpenAPI 3.1 document. No instance has to run.")
    .summary("print the API's OpenAPI document")
    .action(async () => {
      const { describeApi } = await import('../../describe.ts')
      await session.terminal.stdout.write(`${JSON.stringify(await describeApi(), null, 2)}\n`)
    })
}
