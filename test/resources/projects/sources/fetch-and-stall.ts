/** Run as a process of its own by git.test.ts, which kills it: fetches a repository into a workspace. */
import { join } from 'node:path'
import { LocalWorkspace } from '../../../../src/compute/local/workspace.ts'
import { Sources } from '../../../../src/resources/projects/sources/sources.ts'

const [folder = '', url = ''] = process.argv.slice(2)
const sources = new Sources({
  sourceFolders: [join(folder, 'repos')],
  allowLocal: false,
  environment: { PATH: process.env.PATH },
})
await sources.fetch(
  { type: 'git', url },
  {
    workspace: new LocalWorkspace(join(folder, 'workspace')),
    path: 'projects/app',
    signal: new AbortController().signal,
    log: () => {},
  },
)
