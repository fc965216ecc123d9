import type { ToolData } from '../../agents/events.ts'
import { count, formatBytes } from '../output.ts'
import { plain } from '../plain-text.ts'
import { numberIn, textIn } from './transcript.ts'

/** What an agent does with a tool, in a line; a command may have several. */
export function headline(tool: string, input: ToolData): string {
  const folder = textIn(input, 'path') ?? ''
  if (tool === 'run') {
    const cwd = textIn(input, 'cwd')
    return plain(`$ ${textIn(input, 'command') ?? ''}${cwd ? `  (in ${cwd})` : ''}`)
  }
  if (tool === 'write' || tool === 'read') return oneLine(`${tool} ${folder}`)
  if (tool === 'list') return oneLine(`list ${folder || '.'}`)
  if (tool === 'search')
    return oneLine(`search ${textIn(input, 'pattern') ?? ''}${folder ? ` in ${folder}` : ''}`)
  return oneLine(`${tool} ${JSON.stringify(input)}`)
}

/** What came of it where it went well, behind the headline; empty where there is nothing to say. */
export function outcome(tool: string, output: ToolData): string {
  const [bytes, files, matches] = ['bytes', 'files', 'matches'].map((name) => numberIn(output, name))
  if (tool === 'write' || tool === 'read') return bytes === undefined ? '' : formatBytes(bytes)
  if (tool === 'list') return files === undefined ? '' : count(files, 'file')
  if (tool === 'search')
    return matches === undefined ? '' : `${matches} ${matches === 1 ? 'match' : 'matches'}`
  return Object.keys(output).length === 0 ? '' : oneLine(JSON.stringify(output))
}

/** Why it did not go well. */
export function failure(output: ToolData): string {
  const error = textIn(output, 'error')
  if (error !== undefined) return plain(error)
  if (output.timedOut === true) return 'ran out of time and was ended'
  const code = numberIn(output, 'exitCode')
  return code === undefined ? oneLine(JSON.stringify(output)) : `exit code ${code}`
}

const oneLine = (text: string): string => plain(text).replaceAll('\n', '�')
