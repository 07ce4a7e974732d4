// Given to opencode by ostler for one run in a terminal: tells what happens in the conversation that a person is at, one JSON
// object per line, in the shape that `opencode run --format json` has. Nothing that goes wrong here may disturb opencode.
import { appendFileSync, readFileSync, writeFileSync } from "node:fs"

const file = new URL("hooks", import.meta.url)
const owner = new URL("feed.pid", import.meta.url)

// An opencode that a tool starts has the same settings. The first process that loads this is the one that was started.
const isOwner = () => {
  const pid = String(process.pid)
  try {
    writeFileSync(owner, pid, { flag: "wx", mode: 0o600 })
    return true
  } catch {
    return readFileSync(owner, "utf8") === pid
  }
}

const tell = (type, sessionID, more) => {
  try {
    appendFileSync(file, JSON.stringify({ type, sessionID, ...more }) + "\n", { mode: 0o600 })
  } catch {}
}

export const Ostler = async ({ client }) => {
  try {
    if (!isOwner()) return {}
  } catch {
    return {}
  }
  // Conversations of their own; a subagent's hangs below one of them.
  const roots = new Set()
  const prompts = new Set()
  const summaries = new Set()

  const partUpdated = (part) => {
    if (!roots.has(part.sessionID) || summaries.has(part.messageID)) return
    const { id, sessionID } = part
    if (part.type === "text" && prompts.has(part.messageID)) {
      if (!part.synthetic) tell("prompted", sessionID, { part: { id, length: Buffer.byteLength(part.text) } })
    } else if (part.type === "text" && part.time?.end) {
      tell("text", sessionID, { part: { id, text: part.text } })
    } else if (part.type === "tool" && ["completed", "error"].includes(part.state.status)) {
      const { status, input, output, error } = part.state
      tell("tool_use", sessionID, { part: { id, tool: part.tool, state: { status, input, output, error } } })
    } else if (part.type === "step-finish") {
      tell("step_finish", sessionID, { part: { id, tokens: part.tokens, cost: part.cost } })
    }
  }

  const happened = {
    "message.updated": ({ info }) => {
      if (info.role === "user") prompts.add(info.id)
      else if (info.summary) summaries.add(info.id)
    },
    "message.part.updated": ({ part }) => partUpdated(part),
    "session.error": ({ sessionID, error }) => {
      if (roots.has(sessionID)) tell(error.name === "MessageAbortedError" ? "aborted" : "error", sessionID, { error })
    },
    "session.idle": ({ sessionID }) => {
      if (roots.has(sessionID)) tell("idle", sessionID)
      prompts.clear()
      summaries.clear()
    },
    "permission.asked": ({ id, sessionID, permission, metadata }) =>
      tell("asked", sessionID, { ask: { id, tool: permission, input: metadata } }),
    "question.asked": ({ id, sessionID, questions }) =>
      tell("asked", sessionID, { ask: { id, tool: "question", input: { questions } } }),
    "permission.replied": ({ sessionID, requestID }) => tell("answered", sessionID, { ask: { id: requestID } }),
    "question.replied": ({ sessionID, requestID }) => tell("answered", sessionID, { ask: { id: requestID } }),
    "question.rejected": ({ sessionID, requestID }) => tell("answered", sessionID, { ask: { id: requestID } }),
  }

  return {
    "chat.message": async ({ sessionID }) => {
      try {
        const found = await client.session.get({ path: { id: sessionID } })
        if (found.data.parentID) return
        roots.add(sessionID)
        tell("prompt", sessionID)
      } catch {}
    },
    event: async ({ event }) => {
      try {
        happened[event.type]?.(event.properties)
      } catch {}
    },
  }
}
