import type { JSONSchema7, LanguageModelV4FunctionTool } from '@ai-sdk/provider'
import { type Static, type TObject, Type } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import { firstCharacters, lastCharacters } from '../../runtime/characters.ts'
import type { Assignment, Outcome } from '../agent.ts'
import { ToolError } from '../workbench/search.ts'
import type { ModelBudget } from './budget.ts'

/** The result of a call: a text for the model, or the end of the task. */
export type ToolOutcome = { readonly text: string; readonly ok: boolean } | { readonly finished: Outcome }

/** What tools work with. */
interface ToolContext {
  assignment: Assignment
  budget: ModelBudget
}

/** One tool: its description for the model, its input schema and its implementation. */
interface Tool<Input extends TObject = TObject> {
  readonly description: string
  readonly input: Input
  use(input: Static<Input>, parts: ToolContext): Promise<ToolOutcome>
}

/** Declares a tool. `useTool` checks the input by the tool's own schema, which the common type does not show. */
const tool = <Input extends TObject>(one: Tool<Input>): Tool => one as unknown as Tool

const STATUSES = ['completed', 'failed']

const PATH = 'relative to the workspace'

const TOOLS: Readonly<Record<string, Tool>> = {
  run: tool({
    description: 'Runs a shell command in the workspace and gives back its exit code and what it printed.',
    input: Type.Object({
      command: Type.String({ minLength: 1, description: 'for sh -c' }),
      folder: Type.Optional(Type.String({ description: `where it runs, ${PATH}` })),
      timeout_seconds: Type.Optional(
        Type.Number({ minimum: 1, description: 'it is ended after so long; 600 without it' }),
      ),
    }),
    async use({ command, folder, timeout_seconds = 600 }, { assignment, budget }) {
      const timeoutMs = Math.max(1, Math.min(timeout_seconds * 1_000, budget.leftMs))
      const cwd = folder === undefined ? {} : { cwd: folder }
      const result = await assignment.workbench.run(command, { timeoutMs, ...cwd })
      const { exitCode, stdout, stderr, timedOut, refused = [] } = result
      const head = timedOut
        ? `ended after ${Math.round(timeoutMs / 1_000)} s, since it took longer`
        : `exit code ${exitCode}`
      const printed = [
        stdout === '' ? '' : `stdout:\n${truncateMiddle(stdout)}`,
        stderr === '' ? '' : `stderr:\n${truncateMiddle(stderr)}`,
        ...(exitCode === 0 ? [] : refused),
      ]
      return { text: [head, ...printed].filter(Boolean).join('\n'), ok: exitCode === 0 }
    },
  }),
  read: tool({
    description: 'Gives back the text of a file, or some of its lines.',
    input: Type.Object({
      path: Type.String({ description: PATH }),
      first_line: Type.Optional(Type.Integer({ minimum: 1, description: 'where to begin, from 1' })),
      last_line: Type.Optional(Type.Integer({ minimum: 1, description: 'where to end, included' })),
    }),
    async use({ path, first_line = 1, last_line }, { assignment }) {
      const { content, truncated } = await assignment.workbench.read(path)
      return { text: selectLines(content, first_line, last_line, truncated), ok: true }
    },
  }),
  write: tool({
    description:
      'Makes a file with this content, or replaces it whole; makes the directories that it lies in.',
    input: Type.Object({ path: Type.String({ minLength: 1, description: PATH }), content: Type.String() }),
    async use({ path, content }, { assignment }) {
      await assignment.workbench.write(path, content)
      return { text: 'written', ok: true }
    },
  }),
  list: tool({
    description: 'Lists the files in a directory and all directories in it, but for .git and node_modules.',
    input: Type.Object({ folder: Type.Optional(Type.String({ description: `${PATH}; all without it` })) }),
    async use({ folder }, { assignment }) {
      const { files, truncated } = await assignment.workbench.list(folder)
      const text = files.length === 0 ? '(no files)' : truncateMiddle(files.join('\n'))
      return { text: truncated ? `${text}\n(there are more)` : text, ok: true }
    },
  }),
  search: tool({
    description: 'Finds the lines of text files that a regular expression (POSIX extended) matches.',
    input: Type.Object({
      expression: Type.String({ minLength: 1 }),
      folder: Type.Optional(
        Type.String({ description: `directory or file to search, ${PATH}; all without it` }),
      ),
    }),
    async use({ expression, folder }, { assignment }) {
      const { matches, truncated } = await assignment.workbench.search(expression, folder)
      const lines = matches.map(({ path, line, text }) => `${path}:${line}: ${text}`)
      const text = lines.length === 0 ? '(nothing found)' : truncateMiddle(lines.join('\n'))
      return { text: truncated ? `${text}\n(there are more)` : text, ok: true }
    },
  }),
  ask: tool({
    description: 'Asks the caller a question and gives back the answer. That may take hours.',
    input: Type.Object({ question: Type.String({ minLength: 1 }) }),
    async use({ question }, { assignment: { ask }, budget }) {
      if (ask === null) throw new ToolError('Nobody can be asked.')
      return { text: await budget.untimed(() => ask(question)), ok: true }
    },
  }),
  finish: tool({
    description: 'Ends the task. Call it alone, when you have seen what all other calls gave.',
    input: Type.Object({
      status: Type.String({ enum: STATUSES, pattern: `^(${STATUSES.join('|')})$` }),
      result: Type.String({
        minLength: 1,
        description: 'what was done and found, or why it failed, for the caller',
      }),
    }),
    async use({ status, result }) {
      return { finished: { status: status === 'completed' ? status : 'failed', result } }
    },
  }),
}

/** Returns the tools that a model is offered for a goal. */
export const offeredTools = ({ ask }: Assignment): LanguageModelV4FunctionTool[] =>
  Object.entries(TOOLS)
    .filter(([name]) => name !== 'ask' || ask !== null)
    .map(([name, { description, input }]) => functionTool(name, description, input))

/**
 * Runs a tool call.
 *
 * @param input the arguments as JSON, as the model wrote them
 * @throws MalformedCall, the workbench's errors except ToolError, the reason of the assignment's signal
 */
export async function useTool(name: string, input: string, parts: ToolContext): Promise<ToolOutcome> {
  const one = Object.hasOwn(TOOLS, name) ? TOOLS[name] : undefined
  if (!one) {
    const names = offeredTools(parts.assignment).map((offered) => offered.name)
    throw new MalformedCall(
      `There is no tool ${JSON.stringify(name.slice(0, 64))}; there are ${names.join(', ')}.`,
    )
  }
  const given = readToolInput(one.input, input)
  try {
    return await one.use(given as never, parts)
  } catch (error) {
    if (error instanceof ToolError) return { text: error.message, ok: false }
    throw error
  }
}

/** Characters of a result that a model is given. @bound reader */
const MAX_RESULT = 24_000

/** Returns the beginning and the end of a text that is too long. */
function truncateMiddle(text: string, most: number = MAX_RESULT): string {
  if (text.length <= most) return text
  const head = firstCharacters(text, Math.floor((most * 2) / 3))
  const tail = lastCharacters(text, most - head.length)
  const omitted = text.length - head.length - tail.length
  return `${head}\n… (${omitted} characters are left out here)\n${tail}`
}

/**
 * Returns some lines of a file, as many as fit, and a note if some are missing.
 *
 * @param first counts from 1
 * @param last inclusive; without it to the end
 * @param isCut whether the file continues after `content`
 */
function selectLines(content: string, first: number, last: number | undefined, isCut: boolean): string {
  const lines = content.replace(/\n$/, '').split('\n')
  const wanted = lines.slice(first - 1, last)
  const given: string[] = []
  let room = MAX_RESULT
  for (const line of wanted) {
    room -= line.length + 1
    if (room < 0) break
    given.push(line)
  }
  const total = isCut ? `${lines.length}, and more that only run can show` : `${lines.length}`
  if (wanted.length === 0) return `(there is no such line: the file has ${total})`
  // Not even one line fits.
  if (given.length === 0) return truncateMiddle(wanted.join('\n'))
  if (given.length === lines.length && !isCut) return content
  return `${given.join('\n')}\n(lines ${first} to ${first - 1 + given.length} of ${total})`
}

/** A tool call with invalid arguments. The message is for the model. */
export class MalformedCall extends Error {
  override readonly name = 'MalformedCall'
}

/** Returns a tool in the form of the library. */
export const functionTool = (
  name: string,
  description: string,
  input: TObject,
): LanguageModelV4FunctionTool => ({
  type: 'function',
  name,
  description,
  // A TypeBox schema is a JSON schema; its type has symbols besides.
  inputSchema: { ...input, additionalProperties: false } as unknown as JSONSchema7,
})

/**
 * Parses the arguments of a tool call by its schema. Empty text is no arguments; numbers given as text are converted;
 * nulls and unknown fields are dropped.
 *
 * @throws MalformedCall if they are not JSON or do not fit the schema
 */
export function readToolInput<Input extends TObject>(schema: Input, input: string): Static<Input> {
  let read: unknown
  try {
    read = input.trim() === '' ? {} : JSON.parse(input)
  } catch (error) {
    throw new MalformedCall(`The arguments are no JSON: ${error instanceof Error ? error.message : error}.`)
  }
  const given = Value.Clean(schema, Value.Convert(schema, withoutNulls(read)))
  const [problem] = Value.Errors(schema, given)
  if (problem) {
    const name = problem.path.slice(1)
    throw new MalformedCall(
      name === '' ? 'The arguments must be an object.' : `"${name}": ${problem.message}.`,
    )
  }
  return given as Static<Input>
}

/** Arguments that are left out are null in the calls of some models. */
const withoutNulls = (value: unknown): unknown =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
    ? Object.fromEntries(Object.entries(value).filter(([, one]) => one !== null))
    : value
