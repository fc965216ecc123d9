import { guideNames } from '../../http/docs/guide/pages.ts'
import type { Catalog } from '../command.ts'
import { API_NOUNS, CONTROL_NOUNS, NAME_SOURCES } from '../nouns/index.ts'
import { reset } from '../nouns/snapshots.ts'
import { licenses, openapi, version } from './about.ts'
import { changes } from './changes.ts'
import { completion, registerCompletion } from './completion.ts'
import { cp } from './cp.ts'
import { deploy } from './deploy.ts'
import { detect } from './detect.ts'
import { doctor } from './doctor.ts'
import { engineNoun } from './engine.ts'
import { exec } from './exec.ts'
import { guide } from './guide.ts'
import { env, listCommand, open, stop, wait } from './instances.ts'
import { kubernetesNoun } from './kubernetes.ts'
import { listenCommand } from './listen.ts'
import { login, logout, whoami } from './login.ts'
import { logs } from './logs.ts'
import { reportCommand } from './report.ts'
import { shell } from './shell.ts'
import { sync } from './sync.ts'
import { trigger } from './trigger.ts'
import { down, up } from './up.ts'
import { upgrade } from './upgrade.ts'
import { use } from './use.ts'

/** All commands but `serve` and `run`. */
export const CATALOG: Catalog = {
  groups: [
    {
      heading: 'Run berth:',
      members: [up, down, listCommand, wait, env, stop, open, detect, doctor, engineNoun, kubernetesNoun],
    },
    { heading: 'Sign in:', members: [login, logout, whoami] },
    { heading: 'Use the API:', members: [...API_NOUNS, shell, exec, cp, sync, deploy, changes, use] },
    {
      heading: 'Test against berth:',
      members: [reset, ...CONTROL_NOUNS, logs, listenCommand, trigger, reportCommand],
    },
    { heading: 'About berth:', members: [guide, completion, openapi, version, upgrade, licenses] },
  ],
  names: NAME_SOURCES,
  pages: guideNames,
  registerCompletion,
}
