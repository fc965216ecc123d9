import { EngineNotes } from '../../../src/compute/engine/owner.ts'

/** Returns the digits by which the markers of all processes of servers of a data directory begin, on an engine. */
export const ownerMarker = (dataDir: string): string => new EngineNotes(dataDir).owner.slice(0, 12)
