/**
 * Run as a process of its own by workspace-user.test.ts, in a mount namespace where the temporary
 * folder is a file system of 1 MiB. Prints one JSON object.
 */
import { readdirSync } from 'node:fs'
import { WorkspaceError } from '../../src/compute/workspace.ts'
import { Box } from './workspace-fixture.ts'

await using box = await Box.open()
await box.write('kept', 'old')
const error: unknown = await box.write('kept', 'x'.repeat(4 * 1024 * 1024)).catch((error) => error)
const fault = error instanceof WorkspaceError ? error.fault : String(error)
const names = readdirSync(box.root)
await box.write('kept', 'new')
console.log(JSON.stringify({ fault, names, text: await box.text('kept') }))
