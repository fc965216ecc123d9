/** A template's keywords and their points. Keywords are singular and lower-case. */
export type Keywords = Readonly<Record<string, number>>

/**
 * The keywords of each template. Two words are joined: `real time` and `real-time` in a goal match `realtime`. 4 points
 * for a name of the kind of app, 1 for a hint that decides between equals.
 */
export const KEYWORDS: Readonly<Record<string, Keywords>> = {
  'static-site': {
    ...{ landing: 3, website: 3, site: 2, page: 2, homepage: 3, portfolio: 4, brochure: 4, static: 4 },
    ...{ html: 2, css: 2, marketing: 2, blog: 3, resume: 3, cv: 3, menu: 1, gallery: 2, documentation: 1 },
  },
  'bun-api': {
    ...{ api: 3, rest: 3, endpoint: 3, backend: 3, crud: 3, json: 2, microservice: 3, http: 1, route: 1 },
    ...{ todo: 2, task: 2, service: 2, server: 1, bun: 4, typescript: 1, webhook: 2 },
  },
  'sqlite-notes': {
    ...{ note: 4, notebook: 4, notepad: 4, journal: 4, diary: 4, memo: 4, sqlite: 4, database: 3, sql: 3 },
    ...{ bookmark: 3, wiki: 3, recipe: 2, list: 1, store: 1, save: 1, persistent: 2, blog: 1, api: 1 },
  },
  fullstack: {
    ...{ fullstack: 4, poll: 4, vote: 4, voting: 4, survey: 4, quiz: 3, ballot: 4, questionnaire: 3 },
    ...{ dashboard: 3, frontend: 2, interactive: 2, webapp: 3, ui: 2, admin: 2, counter: 2, app: 1 },
  },
  'websocket-chat': {
    ...{ chat: 4, websocket: 4, messenger: 4, messaging: 4, chatroom: 4, room: 2, message: 2, realtime: 3 },
    ...{ live: 1, multiplayer: 3, presence: 3, collaborative: 2, conversation: 2, socket: 2, talk: 1 },
  },
  'python-api': {
    ...{ python: 5, flask: 4, fastapi: 4, django: 4, statistic: 3, wordcount: 4, nlp: 3, text: 1, word: 1 },
    ...{ count: 1, analysi: 1, analyse: 1, analyze: 1, api: 1, data: 1 },
  },
}

/** Programs that must be installed on the machine for a template. The other templates need none. */
export const NEEDED_TOOLS: Readonly<Record<string, string>> = { 'python-api': 'python3' }
