/** What happens at the timers of berth's clock, in words; docs/accounts.md lists their names. */
const WORDS: Readonly<Record<string, string>> = {
  'server.sleep': 'a server that nobody uses goes to sleep',
  'delivery.retry': 'a delivery is tried again',
  'webhook.retry': 'deliveries of a webhook begin again',
  'task.continue': 'a scenario goes on after its wait',
  'model.retry': 'a language model is asked again',
  'project.restart': 'a crashed app starts again',
  'deployment.restart': 'a crashed deployment starts again',
  'terminal.hang_up': 'a terminal that nobody uses is ended',
  'terminal.forget': 'an ended terminal leaves the list',
  'execution.end': 'an execution that nobody uses is ended',
  'execution.forget': 'an ended execution leaves the list',
  'account.budget': 'a budget reaches a mark, or the month ends',
  'session.end': 'a browser is signed out',
}

/** Says what happens at a timer: in words, or by its name if it is a new one. */
export const timerWords = (name: string): string => WORDS[name] ?? name
