import { type Command, Help } from 'commander'
import { CONNECTION_GROUP } from './runner.ts'

/** Orders the groups of a help text, the connection options last. It overrides a method of the library's Help. */
export const groupItems: Help['groupItems'] = (unsorted, visible, groupOf) => {
  const groups = Help.prototype.groupItems(unsorted, visible, groupOf)
  const last = groups.get(CONNECTION_GROUP)
  if (last && groups.delete(CONNECTION_GROUP)) groups.set(CONNECTION_GROUP, last)
  return groups
}

/**
 * Wraps the paragraphs of a help text that are wider than the terminal. Indented lines are lists and examples, and
 * stay unchanged like paragraphs that fit.
 */
export function reflow(text: string, width: number): string {
  const out: string[] = []
  let paragraph: string[] = []
  const flush = () => {
    out.push(...(paragraph.some((line) => line.length > width) ? wrapParagraph(paragraph, width) : paragraph))
    paragraph = []
  }
  for (const line of text.split('\n')) {
    if (/^\S/.test(line)) paragraph.push(line)
    else {
      flush()
      out.push(line)
    }
  }
  flush()
  return out.join('\n')
}

function wrapParagraph(paragraph: readonly string[], width: number): string[] {
  const lines: string[] = []
  let line = ''
  for (const word of paragraph.join(' ').split(' ')) {
    if (line !== '' && line.length + 1 + word.length > width) {
      lines.push(line)
      line = word
    } else line = line === '' ? word : `${line} ${word}`
  }
  return [...lines, line]
}

/** The page of the guide about each command, by the command's name. */
export const GUIDE_PAGES: Readonly<Record<string, string>> = {
  serve: 'options',
  up: 'up',
  down: 'up',
  run: 'instances',
  list: 'instances',
  wait: 'instances',
  env: 'instances',
  stop: 'instances',
  open: 'access',
  doctor: 'troubleshooting',
  login: 'access',
  logout: 'access',
  whoami: 'access',
  servers: 'api',
  files: 'api',
  exec: 'api',
  shell: 'terminals',
  terminals: 'terminals',
  tasks: 'tasks',
  builds: 'tasks',
  projects: 'projects',
  secrets: 'projects',
  deployments: 'projects',
  deploy: 'projects',
  templates: 'sources',
  keys: 'access',
  events: 'webhooks',
  webhooks: 'webhooks',
  deliveries: 'webhooks',
  agents: 'mcp',
  use: 'command-line',
  reset: 'snapshots',
  snapshots: 'snapshots',
  accounts: 'accounts',
  clock: 'accounts',
  faults: 'faults',
  fixtures: 'fixtures',
  scenarios: 'scenarios',
  inbox: 'webhooks',
  listen: 'webhooks',
  trigger: 'webhooks',
  logs: 'journal',
  completion: 'command-line',
}

/** Adds a last line to the help of commands that have a page of the guide. */
export function addGuideHints(program: Command): void {
  for (const command of program.commands) {
    const page = GUIDE_PAGES[command.name()]
    if (page !== undefined) command.addHelpText('after', `\nMore in the guide: berth guide ${page}`)
  }
}
