//! The demo's texts, in the two languages of the product. Sentences are complete; only values are inserted.

pub(super) struct Words {
    pub(super) first_thought: &'static str,
    pub(super) introduction: &'static str,
    pub(super) plan: &'static str,
    pub(super) plan_denied: &'static str,
    /// For each step: the task, and its form while it is being done.
    pub(super) todos: [(&'static str, &'static str); super::STEPS],
    pub(super) before_listing: &'static str,
    pub(super) listing_description: &'static str,
    pub(super) listing_denied: &'static str,
    pub(super) only_listing: &'static str,
    /// `{count}`: how many entries there are.
    pub(super) listed: &'static str,
    pub(super) before_note: &'static str,
    pub(super) note_body: &'static str,
    pub(super) note_first: &'static str,
    pub(super) note_later: &'static str,
    pub(super) note_denied: &'static str,
    /// `{why}`: the cause.
    pub(super) note_failed: &'static str,
    pub(super) only_note: &'static str,
    pub(super) noted: &'static str,
    pub(super) question: &'static str,
    pub(super) question_header: &'static str,
    pub(super) options: [(&'static str, &'static str); 3],
    pub(super) unanswered: &'static str,
    pub(super) denied: &'static str,
    /// `{why}`: the cause.
    pub(super) failed: &'static str,
    pub(super) closing: &'static str,
    pub(super) table_head: &'static str,
    pub(super) code: &'static str,
    pub(super) farewell: &'static str,
    pub(super) later_thought: &'static str,
    /// `{count}`, `{first}`, `{prompt}`: how many messages, the first one, this one.
    pub(super) follow_up: &'static str,
    pub(super) before_edit: &'static str,
    pub(super) later_end: &'static str,
}

impl Words {
    pub(super) fn in_language_of(prompt: &str) -> &'static Self {
        if prompt.chars().any(is_cjk) {
            &CHINESE
        } else {
            &ENGLISH
        }
    }
}

pub(super) fn is_cjk(character: char) -> bool {
    matches!(character, '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3134f}')
}

pub(super) fn asks_for_tour(prompt: &str) -> bool {
    prompt.to_lowercase().contains("tour") || prompt.contains("演示")
}

static ENGLISH: Words = Words {
    first_thought: "There is no model behind me, so I can't think about this task. I can show what thinking looks \
                    like, though, and then take the user through a short tour.",
    introduction: "## Hello, I am the demo agent\n\n\
                   Tiller uses me where Claude Code is not installed. **No model is behind this conversation**; what \
                   you see is a short scripted tour:\n\n\
                   - thinking, a to-do list and streamed Markdown,\n\
                   - a tool that needs your permission,\n\
                   - a file that is written only if you allow it,\n\
                   - and a question.\n\n\
                   You can press *stop* at any time.",
    plan: "### Plan\n\n\
           1. List the folder with `ls`, if you allow it\n\
           2. Write `tiller-demo.md`, if you allow it\n\
           3. Ask how the tour should end",
    plan_denied: "You did not approve the plan, so nothing was done. Write “tour” to see it again.",
    todos: [
        (
            "Show a tool that needs permission",
            "Showing a tool that needs permission",
        ),
        ("Show a change to a file", "Showing a change to a file"),
        ("Ask a question", "Asking a question"),
    ],
    before_listing: "First a tool. I would like to run `ls` here; it really runs, and it changes nothing.",
    listing_description: "List the files in this folder",
    listing_denied: "You said no, so nothing was run. A real agent hears your reason and goes on from there.",
    only_listing: "The demo agent runs nothing but `ls`.",
    listed: "{count} entries",
    before_note: "Now a file. I would like to write `tiller-demo.md` in this folder. You see the change before it \
                  is made.",
    note_body: "This file was written by Tiller's demo agent, after you allowed it. You may delete it.",
    note_first: "You wrote",
    note_later: "Then you wrote",
    note_denied: "You said no, so the file was left alone.",
    note_failed: "That did not work, and no file was changed: {why}",
    only_note: "The demo agent writes no other file than tiller-demo.md.",
    noted: "tiller-demo.md was written",
    question: "How should the tour end?",
    question_header: "Ending",
    options: [
        ("With a table", "What was done, step by step"),
        ("With code", "How to install Claude Code"),
        ("With both", "The table and the code"),
    ],
    unanswered: "not answered",
    denied: "not allowed",
    failed: "did not work: {why}",
    closing: "### That was the tour",
    table_head: "| Step | Result |\n| --- | --- |\n",
    code: "```sh\n# Install Claude Code, log in once, then start Tiller again.\n\
           npm install -g @anthropic-ai/claude-code\nclaude\n```\n",
    farewell: "It cost nothing, as no model was called. To work with a real agent, install Claude Code \
               (`npm install -g @anthropic-ai/claude-code`), run `claude` once to log in, and start Tiller again.",
    later_thought: "I still have no model. But I have kept the conversation, and can show that.",
    follow_up: "This is message {count} of our conversation; the first one was “{first}”. I can't work on \
                “{prompt}”, because **no model is behind the demo agent**, but the session remembers what was said, \
                also after a restart.",
    before_edit: "The note from the tour is still there. I would like to add a line to it:",
    later_end: "Write “tour” to see the tour again. For real work, install Claude Code \
                (`npm install -g @anthropic-ai/claude-code`), run `claude` once to log in, and start Tiller again.",
};

static CHINESE: Words = Words {
    first_thought: "我背后没有模型，所以无法真正思考这个任务。不过我可以展示思考的样子，然后带用户走一遍简短的演示。",
    introduction: "## 你好，我是演示智能体\n\n\
                   没有安装 Claude Code 时，Tiller 会用我来代替。**这个对话背后没有任何模型**，你看到的是一段预先写好的简短演示：\n\n\
                   - 思考、待办列表和流式 Markdown；\n\
                   - 一个需要你批准的工具；\n\
                   - 一个只有你允许才会写入的文件；\n\
                   - 一个提问。\n\n\
                   你可以随时按*停止*。",
    plan: "### 计划\n\n\
           1. 如果你允许，用 `ls` 列出文件夹内容\n\
           2. 如果你允许，写入 `tiller-demo.md`\n\
           3. 询问演示该怎样结束",
    plan_denied: "你没有批准计划，所以什么也没有做。输入“演示”可以再看一遍。",
    todos: [
        ("展示一个需要批准的工具", "正在展示一个需要批准的工具"),
        ("展示一次文件改动", "正在展示一次文件改动"),
        ("提一个问题", "正在提问"),
    ],
    before_listing: "先来看工具。我想在这里运行 `ls`；它会真的运行，但不会改动任何东西。",
    listing_description: "列出此文件夹中的文件",
    listing_denied: "你拒绝了，所以什么也没有运行。真正的智能体会知道你的理由，并据此继续。",
    only_listing: "演示智能体只会运行 `ls`。",
    listed: "共 {count} 项",
    before_note: "再来看文件。我想在这个文件夹里写入 `tiller-demo.md`。改动之前你会先看到内容。",
    note_body: "这个文件由 Tiller 的演示智能体在你允许之后写入，可以删除。",
    note_first: "你写了",
    note_later: "后来你写了",
    note_denied: "你拒绝了，所以文件没有被改动。",
    note_failed: "没有成功，也没有改动任何文件：{why}",
    only_note: "演示智能体只会写 tiller-demo.md 这一个文件。",
    noted: "已写入 tiller-demo.md",
    question: "演示该怎样结束？",
    question_header: "结尾",
    options: [
        ("用表格", "逐步列出做了什么"),
        ("用代码", "怎样安装 Claude Code"),
        ("两者都要", "表格和代码"),
    ],
    unanswered: "没有回答",
    denied: "未获允许",
    failed: "没有成功：{why}",
    closing: "### 演示到此结束",
    table_head: "| 步骤 | 结果 |\n| --- | --- |\n",
    code: "```sh\n# 安装 Claude Code，登录一次，然后重新启动 Tiller。\n\
           npm install -g @anthropic-ai/claude-code\nclaude\n```\n",
    farewell: "这次没有产生任何费用，因为没有调用模型。要使用真正的智能体，请安装 Claude Code\
               （`npm install -g @anthropic-ai/claude-code`），运行一次 `claude` 登录，然后重新启动 Tiller。",
    later_thought: "我仍然没有模型。但我保留了对话，可以展示这一点。",
    follow_up: "这是我们对话的第 {count} 条消息，第一条是“{first}”。我无法处理“{prompt}”，因为**演示智能体背后没有模型**，\
                但会话记得说过的话，重启之后也一样。",
    before_edit: "演示中写的文件还在。我想给它加一行：",
    later_end: "输入“演示”可以再看一遍。要真正工作，请安装 Claude Code\
                （`npm install -g @anthropic-ai/claude-code`），运行一次 `claude` 登录，然后重新启动 Tiller。",
};
