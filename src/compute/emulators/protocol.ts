import type { TerminalSize } from '../sandbox.ts'
import type { RowEvent, ScreenRows } from './rows.ts'
import type { ScreenText } from './text.ts'

/** The size of an emulator, with the rows above its screen. */
export type EmulatorSize = TerminalSize & { readonly scrollback: number }

/** A request to the Worker, about the emulator `id`. Each but `open` gets one reply, in order but for `peek`. */
export type EmulatorRequest = { readonly id: number } & (
  | { readonly kind: 'open'; readonly size: EmulatorSize; readonly followsRows: boolean }
  | { readonly kind: 'write'; readonly data: Uint8Array<ArrayBuffer> }
  | { readonly kind: 'resize'; readonly size: EmulatorSize }
  | { readonly kind: 'serialize' }
  | { readonly kind: 'read'; readonly lines: number }
  | { readonly kind: 'peek'; readonly lines: number }
  | { readonly kind: 'rows' }
  | ({ readonly kind: 'watch'; readonly watch: number } & WatchRequest)
  | { readonly kind: 'unwatch'; readonly watch: number }
  | { readonly kind: 'close' }
)

/** What to look for on a screen. */
export interface WatchRequest {
  /** A regular expression; null to learn the modes only. */
  readonly pattern: string | null
  /** Whether to look only at what changes from now on. */
  readonly onlyNew: boolean
}

/** The results of requests, by kind. */
export interface EmulatorResults {
  write: WriteResult
  resize: null
  /** What draws the same screen, with as much of its scrollback as fits into the bound, on an empty terminal. */
  serialize: Uint8Array<ArrayBuffer>
  read: ScreenText
  /** The screen as it is now, even if earlier requests are not done yet. */
  peek: ScreenText
  rows: ScreenRows
  watch: WatchResult
  unwatch: null
  close: null
}

/** What drawing has led to. */
export interface WriteResult {
  /** Whether plain lines that are followed by enough others would leave no trace. */
  readonly plain: boolean
  readonly matches: readonly PatternMatch[]
  /** What has happened to the rows, if that is followed. */
  readonly rowEvents: readonly RowEvent[]
  readonly modes: InputModes
}

/** A pattern that was found, by the number of its watch. */
export interface PatternMatch {
  readonly watch: number
  readonly text: string
}

/** The begin of a watch. */
export interface WatchResult {
  readonly modes: InputModes
  /** What matches already; null if nothing does. */
  readonly match: string | null
  /** Why the pattern is refused; null if it is not. */
  readonly refusal: string | null
}

/** The modes of a terminal that change what keys send. */
export interface InputModes {
  /** Cursor keys send the sequences of applications (DECCKM). */
  readonly cursorKeys: boolean
  /** What is pasted is enclosed in marks. */
  readonly paste: boolean
}

/** A message of the Worker. */
export type EmulatorMessage =
  | {
      readonly id: number
      readonly kind: EmulatorRequest['kind']
      /** Null if the emulator could not do it. */
      readonly result: EmulatorResults[keyof EmulatorResults]
    }
  /** What a terminal responds to a program that has asked it something, such as where its cursor is. */
  | { readonly id: number; readonly answer: string }
  /** The emulator has failed, and the screen was made anew. */
  | { readonly id: number | null; readonly fault: string }
