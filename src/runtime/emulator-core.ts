import type { Terminal } from '@xterm/headless'

/**
 * The parts of the emulator (xterm.js) that its interface does not show. They belong to the versions that package.json
 * pins, of the emulator without a display and of the one in a browser.
 */
interface EmulatorCore {
  readonly _inputHandler: InputHandler
  readonly buffer: ScreenBuffer
  readonly buffers: { readonly normal: ScreenBuffer; readonly alt: ScreenBuffer }
  readonly coreService: {
    readonly isCursorHidden: boolean
    readonly decPrivateModes: {
      readonly cursorStyle?: string
      readonly cursorBlink?: boolean
      readonly origin: boolean
    }
  }
  readonly coreMouseService: { readonly activeEncoding: string }
}

/** What carries out the sequences of a program. */
interface InputHandler {
  readonly _parser: {
    readonly currentState: number
    /** Forgets a sequence or a string that is under way. */
    reset(): void
    /** The parameters of the sequence that is carried out. */
    readonly _params: { readonly params: Int32Array }
  }
  readonly _curAttrData: AttributeData
  /** Draws bytes; a promise if a handler has returned one. */
  parse(data: Uint8Array): unknown
  eraseInDisplay(parameters: Parameters, keepsProtected: boolean): boolean
  eraseInLine(parameters: Parameters, keepsProtected: boolean): boolean
}

/** The parameters of a sequence. */
interface Parameters {
  readonly params: readonly number[]
  readonly length: number
}

/** The attributes with which characters are drawn. */
interface AttributeData {
  bg: number
  /** Notes in `bg` whether there are attributes that need an object of their own. */
  updateExtended(): void
}

/** The normal or the alternate screen, with its scrollback. */
interface ScreenBuffer {
  readonly scrollTop: number
  readonly scrollBottom: number
  x: number
  readonly y: number
  readonly ybase: number
  readonly lines: { readonly length: number; get(row: number): BufferLine | undefined }
  getNullCell(): Cell
}

/** One character with its attributes. */
type Cell = unknown

/** A row of cells. */
export interface BufferLine {
  readonly length: number
  /** The characters of cells that hold more than one, by column; also of cells that no longer do. */
  _combined: Record<number, string>
  /** Whether it continues the row above. */
  isWrapped: boolean
  isCombined(column: number): number
  resize(columns: number, fill: Cell): boolean
}

/** The states of the parser between sequences, and the first of those inside of a string. */
export const GROUND = 0
export const FIRST_STRING_STATE = 7
export const OSC_STRING_STATE = 8

/** Returns the inner parts of an emulator. */
export const coreOf = (terminal: Pick<Terminal, 'write'>): EmulatorCore =>
  (terminal as unknown as { _core: EmulatorCore })._core
