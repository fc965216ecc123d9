import {
  CACHES_PATH,
  EXECUTABLE_PATH,
  type InstanceSpec,
  ROOT_CAPABILITIES,
  SANDBOXD_SHARE,
  TOOLS_PATH,
  WORKSPACE_PATH,
} from '../engine/engine.ts'
import { labelsToText } from '../engine/names.ts'

/** The prefix of labels of what berth makes on an engine. */
export const CONTAINER_LABELS = 'berth.'

/** Files that a process may have open. An engine refuses more than it may have itself. */
const OPEN_FILES = { soft: 1024, hard: 16_384 }

/**
 * Processes of the user of servers, of all servers together, on Podman, whose own default may be more than it may itself. On
 * Docker it is what the engine may, and `PidsLimit` holds for one server.
 */
const USER_PROCESSES = 15_000

/** Bytes of /tmp and of /dev/shm, which are memory, at most. @bound system */
const MAX_TMP_BYTES = 2 ** 30

/** How containers are made on one engine. */
export interface ContainerSettings {
  /** How berth reaches process 1: by its own input, whose end ends it, or by other processes. */
  readonly carrier: 'attach' | 'exec'
  /** Name of the network, `none` for none. */
  readonly network: string
  readonly isPodman: boolean
  /** Name of the engine's runtime; null for its default. */
  readonly runtime: string | null
  /** Processors of the engine's machine, more than which it refuses. */
  readonly processors: number
  /** Name of the volume with berth's tools, for an image without them; null if the image has them. */
  readonly tools: string | null
}

/** Returns the name of the volume of a server's caches. */
export const cachesOf = (storage: string): string => `${storage}-caches`

/**
 * Returns the settings of a server's container (docs.docker.com/reference/api/engine, "Create a container"). Its user has no
 * right beyond its own files and never gets any; nothing of the container but the volumes and memory can be written, unless
 * the server is root's. The kernel holds it to its limits.
 */
export function containerSettings(spec: InstanceSpec, settings: ContainerSettings): object {
  const { limits, user, labels } = spec
  const { carrier, network, isPodman, runtime, processors, tools } = settings
  const memory = limits.memoryBytes + SANDBOXD_SHARE.memoryBytes
  const processes = limits.processes + SANDBOXD_SHARE.processes
  const tmp = Math.floor(Math.min(limits.memoryBytes / 4, MAX_TMP_BYTES))
  const isRoot = user === 0
  const isAttached = carrier === 'attach'
  return {
    Image: spec.image,
    Entrypoint: [EXECUTABLE_PATH],
    Cmd: spec.args,
    Env: Object.entries(spec.env).map(([name, value]) => `${name}=${value}`),
    User: `${user}:${user}`,
    WorkingDir: '/',
    Hostname: labels.server,
    Labels: labelsToText(CONTAINER_LABELS, labels),
    AttachStdin: isAttached,
    AttachStdout: isAttached,
    AttachStderr: isAttached,
    OpenStdin: isAttached,
    // When berth is gone, process 1 reads the end of its input, and ends.
    StdinOnce: isAttached,
    Tty: false,
    // The health check of another image is for its own program.
    Healthcheck: { Test: ['NONE'] },
    HostConfig: {
      NetworkMode: network,
      ...(runtime === null ? {} : { Runtime: runtime }),
      // One that outlives its engine would be removed by the next, though it runs.
      AutoRemove: isAttached,
      // All output of commands passes through process 1.
      LogConfig: { Type: 'none', Config: {} },
      CapDrop: ['ALL'],
      ...(isRoot ? { CapAdd: ROOT_CAPABILITIES } : {}),
      SecurityOpt: ['no-new-privileges'],
      ReadonlyRootfs: !isRoot,
      IpcMode: 'private',
      Memory: memory,
      MemorySwap: memory,
      NanoCpus: Math.round(Math.min(limits.cpus, processors) * 1e9),
      PidsLimit: processes,
      ShmSize: tmp,
      Tmpfs: {
        '/tmp': `rw,exec,nosuid,nodev,mode=1777,size=${tmp}`,
        // Its mode is that of the image's directory, whatever is said here. Podman cannot give it an owner.
        '/run': `rw,nosuid,nodev,size=16m,${isPodman ? 'mode=1777' : `uid=${user},gid=${user},mode=755`}`,
      },
      Ulimits: [
        { Name: 'nofile', Soft: OPEN_FILES.soft, Hard: OPEN_FILES.hard },
        ...(isPodman ? [{ Name: 'nproc', Soft: USER_PROCESSES, Hard: USER_PROCESSES }] : []),
        { Name: 'core', Soft: 0, Hard: 0 },
      ],
      // Without it there is no ::1 in a network without IPv6.
      Sysctls: { 'net.ipv6.conf.lo.disable_ipv6': '0' },
      Mounts: [
        volume(spec.storage, WORKSPACE_PATH),
        volume(cachesOf(spec.storage), CACHES_PATH),
        ...(tools === null ? [] : [{ ...volume(tools, TOOLS_PATH), ReadOnly: true }]),
      ],
    },
  }
}

/** Returns the mount of a volume. */
export const volume = (source: string, target: string) => ({ Type: 'volume', Source: source, Target: target })
