import { type Static, t } from 'elysia'
import { integer, oneOf, text, used } from '../../contract/schema.ts'
import { WORKER_STATUSES } from '../../hosting/app.ts'
import { EnvironmentVariables } from '../secrets/model.ts'
import { TemplateId } from '../templates/model.ts'
import { AppDirectory } from './app-directory.ts'
import { ProjectSource } from './sources/model.ts'
import { Lifecycle, ProjectKind, Visibility } from './traits.ts'

/** Every `RuntimeStatus`. */
export const RUNTIME_STATUSES = ['unbuilt', 'running', 'paused'] as const

/** Status of a project's app. */
export const RuntimeStatus = oneOf([...RUNTIME_STATUSES], {
  $id: 'RuntimeStatus',
  description:
    'unbuilt until its app is first ready; paused while its server sleeps or its app has given up.',
})
export type RuntimeStatus = Static<typeof RuntimeStatus>

/** Every `InitPhase`, in order. */
export const INIT_PHASES = [
  'fetch',
  'install',
  'build',
  'awaiting_secrets',
  'start',
  'healthcheck',
  'ready',
  'failed',
] as const

/** The phase of a project's bring-up. */
export const InitPhase = oneOf([...INIT_PHASES], { $id: 'InitPhase' })
export type InitPhase = Static<typeof InitPhase>

/** A program that runs beside an app, or is the whole of it. */
export const AppWorker = t.Object(
  {
    name: t.String(),
    command: t.String({ description: 'A shell command.' }),
    status: oneOf([...WORKER_STATUSES], {
      $id: 'WorkerStatus',
      description:
        'stopped once it has ended with exit code 0, or its app was stopped; failed once it crashed too often.',
    }),
    exit_code: t.Nullable(integer({ description: 'Of its last process; null while it runs.' })),
    restarts: integer({ minimum: 0, description: 'How often it was started again after a crash.' }),
  },
  { $id: 'AppWorker', additionalProperties: true },
)
export type AppWorker = Static<typeof AppWorker>

/** How an app crashed. Absent while it responds, and if it never did. */
export const AppCrash = t.Object(
  {
    reason: t.String({ description: 'For a person: how its process ended, or did not start again.' }),
    exit_code: t.Nullable(integer({ description: "Of its last process: 128 and a signal's number." })),
    since: t.String({ format: 'date-time', description: 'When it responded last.' }),
    restarts_at: t.Nullable(t.String({ format: 'date-time' }), {
      description: 'When it is started again; null if nothing does that by itself.',
    }),
    attempt: t.Nullable(integer({ minimum: 1, description: 'Which of the 5 restarts that is.' })),
  },
  { $id: 'AppCrash', additionalProperties: true },
)
export type AppCrash = Static<typeof AppCrash>

/** A change of an app's files that did not come up. */
export const FailedChange = t.Object(
  {
    reason: t.String({ description: 'For a person; the log says more.' }),
    at: t.String({ format: 'date-time' }),
  },
  {
    $id: 'FailedChange',
    description:
      'The last change of its files that did not come up, while the version before responds. Absent once a later one does.',
    additionalProperties: true,
  },
)

/** What is wrong with the pages of an app that is up. */
export const AppWarnings = t.Array(t.String(), {
  description:
    'For a person: what keeps a visitor from seeing its pages as they are meant, though the app is up. From requests to `/` and to the health path when the last version came up; empty as a rule.',
})

/** Whether another program has the port of an app's URL. */
export const PortTaken = t.Boolean({
  description:
    'True while another program has the port of `url`, so that `url` leads there. Absent if berth listens there.',
})

/** A phase that a bring-up has come to. */
const InitPhaseEntry = t.Object(
  { phase: InitPhase, began_at: t.String({ format: 'date-time' }) },
  { $id: 'InitPhaseEntry', additionalProperties: true },
)

/** A tool that an app needs. */
const DetectedTool = t.Object(
  {
    name: t.String(),
    wanted: t.Nullable(t.String(), { description: 'The version that its files ask for; null for any.' }),
    wanted_by: t.Nullable(t.String(), { description: 'The file that asks for it.' }),
    found: t.Nullable(t.String(), { description: 'The version that runs; null if there is none.' }),
  },
  { $id: 'DetectedTool', additionalProperties: true },
)

/** What a source says about its app. */
const Evidence = t.Object(
  {
    file: t.String({ description: 'Relative to the source.' }),
    line: t.Nullable(t.Integer(), { description: 'From 1; null where the file itself is the evidence.' }),
    says: t.String(),
  },
  { $id: 'Evidence', additionalProperties: true },
)

/** What a source asks for and berth does not run. */
const LeftOut = t.Object(
  { what: t.String(), why: t.String() },
  { $id: 'LeftOut', additionalProperties: true },
)

/** Another app of a source. */
const OtherApp = t.Object(
  {
    directory: t.String({ description: 'Relative to the source.' }),
    kind: t.String(),
    berth_json: t.Nullable(t.Record(t.String(), t.Unknown()), {
      description: 'A berth.json that runs it; null where naming its directory does.',
    }),
  },
  { $id: 'OtherApp', additionalProperties: true },
)

/** How an app is installed, built and started, as berth detected it. */
export const DetectedApp = t.Object(
  {
    kind: t.String({ description: 'For a person, such as `Node.js (npm)`.' }),
    directory: t.String({ description: 'Where its commands run, relative to the source.' }),
    serves: t.Nullable(t.String(), {
      description: 'The directory that berth serves, relative to the source; null for a command.',
    }),
    install: t.Nullable(t.String(), { description: 'A shell command; null if there is nothing to do.' }),
    build: t.Nullable(t.String(), { description: 'A shell command; null if there is nothing to do.' }),
    start: t.Nullable(t.String(), {
      description: 'A shell command; null if berth serves files, and for a worker.',
    }),
    release: t.Nullable(t.String(), { description: 'A shell command that runs before each start.' }),
    workers: t.Record(t.String(), t.String(), { description: 'Shell commands of its workers, by name.' }),
    port: t.Nullable(t.Integer(), { description: 'The only port that counts; null for the one in PORT.' }),
    health: t.String({ description: 'The path that has to respond with a status under 500.' }),
    tools: t.Array(DetectedTool, { description: 'The tools that it needs.' }),
    evidence: t.Array(Evidence, { description: 'What of the source says so.' }),
    left_out: t.Array(LeftOut, { description: 'What its files ask for and berth does not run.' }),
    others: t.Array(OtherApp, { description: 'Further apps of the source, which are not run.' }),
    warnings: t.Array(t.String(), { description: 'Sentences about what may surprise.' }),
  },
  { $id: 'DetectedApp', additionalProperties: true },
)
export type DetectedApp = Static<typeof DetectedApp>

/** What is found in a source, whether it is an app or not. */
export const Detection = t.Object(
  {
    ...DetectedApp.properties,
    kind: t.Nullable(t.String(), {
      description: 'For a person, such as `Node.js (npm)`; null if none is found.',
    }),
    berth_json: t.Nullable(t.Record(t.String(), t.Unknown()), {
      description: 'A berth.json that says what was found; null if nothing was.',
    }),
    problem: t.Nullable(t.String(), {
      description: 'Why it cannot be run, with the remedy; null if it can.',
    }),
  },
  { $id: 'Detection', additionalProperties: true },
)
export type Detection = Static<typeof Detection>

/** A project. */
export const Project = t.Object(
  {
    id: t.String(),
    server_id: t.String(),
    name: t.String(),
    slug: t.String({ description: 'Unique in the instance; never changes.' }),
    description: t.Nullable(t.String()),
    visibility: Visibility,
    lifecycle: Lifecycle,
    runtime_status: RuntimeStatus,
    template: t.Nullable(t.String(), { description: 'A template id.' }),
    directory: t.Nullable(t.String(), {
      description: "The app's own directory, relative to the code; null if none was named.",
    }),
    url: t.Nullable(t.String(), { description: 'Null while the project is private, and for a worker.' }),
    init_run_id: t.Optional(
      t.String({ description: 'The last bring-up of its code; absent where it has none.' }),
    ),
    init_phase: t.Nullable(InitPhase, { description: 'How far that is; null where there is none.' }),
    init_phases: t.Optional(
      t.Array(InitPhaseEntry, {
        description:
          'The phases that it has come to, in order; each lasts until the next begins. The one before `failed` has failed.',
      }),
    ),
    app: t.Optional(DetectedApp),
    warnings: AppWarnings,
    workers: t.Array(AppWorker, { description: 'Programs that run beside its app, or are the whole of it.' }),
    crash: t.Optional(AppCrash),
    failed_change: t.Optional(FailedChange),
    port_taken: t.Optional(PortTaken),
    created_at: t.String({ format: 'date-time' }),
    updated_at: t.String({ format: 'date-time' }),
  },
  { $id: 'Project', additionalProperties: true },
)
export type Project = Static<typeof Project>

const nameOf = { minLength: 1, maxLength: 100 }
const description = text({ maxLength: 2_000 })

const codeFields = {
  template: t.Optional(used(TemplateId, 'The id of a template; short for a source of that type.')),
  source: t.Optional(ProjectSource),
}

/** The body of a request to detect the app of a source. */
export const ProjectDetect = t.Object(codeFields, { $id: 'ProjectDetect', additionalProperties: true })
export type ProjectDetect = Static<typeof ProjectDetect>

/** The body of a project's creation. */
export const ProjectCreate = t.Object(
  {
    name: t.Optional(text({ ...nameOf, description: 'Two words by default.' })),
    description: t.Optional(description),
    visibility: t.Optional(Visibility),
    lifecycle: t.Optional(Lifecycle),
    kind: t.Optional(ProjectKind),
    ...codeFields,
    env: t.Optional(EnvironmentVariables),
  },
  { $id: 'ProjectCreate', additionalProperties: true },
)
export type ProjectCreate = Static<typeof ProjectCreate>

/** Changes to a project. */
export const ProjectUpdate = t.Object(
  {
    name: t.Optional(text(nameOf)),
    description: t.Optional(description),
    visibility: t.Optional(Visibility),
    lifecycle: t.Optional(Lifecycle),
  },
  { $id: 'ProjectUpdate', additionalProperties: true },
)
export type ProjectUpdate = Static<typeof ProjectUpdate>

/** The body of a request to continue a bring-up. */
export const ProjectInit = t.Object(
  { proceed: t.Optional(t.Boolean({ description: 'Go on without the variables that are missing.' })) },
  { $id: 'ProjectInit', additionalProperties: true },
)
export type ProjectInit = Static<typeof ProjectInit>

/** A file that a directory is to have. */
const PushedFile = t.Object(
  {
    path: t.String({ minLength: 1, description: 'Relative to the directory of the app.' }),
    sha256: t.String({ pattern: '^[0-9a-f]{64}$', description: 'Of its content, in hexadecimal.' }),
    executable: t.Optional(t.Boolean()),
  },
  { $id: 'PushedFile' },
)

/** A symbolic link that a directory is to have. */
const PushedLink = t.Object(
  { path: t.String({ minLength: 1 }), target: t.String({ minLength: 1 }) },
  { $id: 'PushedLink' },
)

/** A file of an archive that is a piece of a larger one. */
const PushedPiece = t.Object(
  {
    path: t.String({ minLength: 1 }),
    offset: integer({ minimum: 0, description: 'Where in the file it belongs, in bytes.' }),
    more: t.Optional(t.Boolean({ description: 'Whether others follow.' })),
  },
  { $id: 'PushedPiece' },
)

/** The fields that describe the files a directory is to have. */
export const PUSHED_FILES = {
  files: t.Array(PushedFile, {
    maxItems: 20_000,
    description: 'All files of the code, also those that the server has.',
  }),
  links: t.Optional(
    t.Array(PushedLink, { maxItems: 20_000, description: 'All symbolic links of the code.' }),
  ),
  pieces: t.Optional(
    t.Array(PushedPiece, {
      maxItems: 20_000,
      description: 'Those files of the archive that are pieces of one too large for a request.',
    }),
  ),
}

/** The code that a project is to have. */
export const ProjectPush = t.Object(
  { ...PUSHED_FILES, directory: t.Optional(AppDirectory) },
  { $id: 'ProjectPush', additionalProperties: true },
)
export type ProjectPush = Static<typeof ProjectPush>

/** The files that a directory is to have. */
export type PushedFiles = Pick<ProjectPush, keyof typeof PUSHED_FILES>

/** The fields that say what has come of pushed files. */
export const PUSHED = {
  missing: t.Array(t.String(), {
    description:
      'Files and links that are still to be sent, in archives. If there are any, nothing was changed.',
  }),
  written: integer({ minimum: 0, description: 'Files and links that were written.' }),
  removed: integer({ minimum: 0, description: 'Files and links that were removed.' }),
}

/** The response to a push. */
export const PushResult = t.Object(
  {
    ...PUSHED,
    began: t.Nullable(oneOf(['install', 'build', 'start'], { $id: 'PushPhase' }), {
      description: 'The first phase of the bring-up that has begun; null if the app needs none.',
    }),
    project: Project,
  },
  { $id: 'PushResult', additionalProperties: true },
)
export type PushResult = Static<typeof PushResult>

/** The response to a cleanup. */
export const CleanupResult = t.Object(
  { id: t.String(), cleaned: t.Literal(true) },
  { $id: 'CleanupResult', additionalProperties: true },
)
