import { accountCaller } from '../../../http/caller.ts'
import type { Applying } from './applying.ts'

/** Characters of a label. */
const LABEL_LIMIT = 40

/** Makes and mends API keys. */
export async function applyKeys(applying: Applying): Promise<void> {
  const { keys } = applying.services
  for (const one of applying.fixtures.keys) {
    const { account, label = one.name.slice(0, LABEL_LIMIT), key, servers = [], projects = [] } = one.value
    const caller = accountCaller(applying.accountId(account) ?? '')
    const scope = {
      allowed_server_ids: servers.map((name) => applying.made('server', name)),
      allowed_project_ids: projects.map((name) => applying.made('project', name)),
    }
    const known = applying.records.find('key', one.name)?.id
    const id = keys.list(caller).find((present) => present.id === known)?.id
    await one.telling(() => {
      if (id === undefined) {
        const made = keys.create(caller, { label, ...scope }, key)
        applying.keep('key', one.name, made.id, () => keys.delete(caller, made.id))
      } else {
        keys.change(caller, id, { label, ...(key === undefined ? {} : { key }) })
        keys.update(caller, id, scope)
      }
    })
  }
}
