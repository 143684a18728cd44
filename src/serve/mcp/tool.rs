//! A tool: its name, its description for clients, and its action.

use std::sync::Arc;

use rmcp::model::{Tool as Listed, ToolAnnotations};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::api::context::Context;
use crate::api::error::Error;
use crate::api::precondition::Expected;
use crate::api::request_key::Answer;
use crate::serve::daemon::context_factory::ContextFactory;
use crate::serve::mcp::result::{self, Refusal};
use crate::serve::mcp::schema::{self, Argument, Object};
use crate::store::idempotency;
use crate::store::transaction::ChangeReport;

/// What a tool can do to the plans, as reported to clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    Reads,
    /// Each call can create something: a plan, a note or an attempt.
    Adds,
    /// A repeated call changes nothing more.
    Sets,
    /// Removes something.
    Removes,
}

pub(super) struct Call {
    /// `by` is the client's name, or the user of this machine if the client has no name.
    pub(super) context: Context,
    /// Creates a new context for this plans directory.
    pub(super) contexts: ContextFactory,
    /// The user of this machine, as the author of confirmations.
    pub(super) person: String,
    /// Whether this process renews shared claims at the registry.
    pub(super) renews: bool,
}

impl Call {
    /// Makes one of the changes of a call. Each of these changes has its own `name`.
    ///
    /// With an etag, the change is made only if the file has that etag. If the call has a key, the change is recorded
    /// under a key made from the call's key and `name`, so a repeated call does not make the change again.
    pub(super) fn part(
        &self,
        name: &str,
        etag: Option<&str>,
        change: impl FnOnce(&Context) -> Result<ChangeReport, Error>,
    ) -> Result<Value, Refusal> {
        let expected = etag.map(|it| Expected::new(vec![it.trim().trim_matches('"').to_owned()]));
        let key = idempotency::part(&self.context, name)?;
        let context = Context { expected, key, ..self.context_again()? };
        let repeated = idempotency::repeated(&context, "change");
        result::changed(repeated.map_or_else(|| change(&context), Ok)?)
    }

    /// Like [`Self::part`], but without an etag and without a key. Used for dry runs, and for changes that a repeated call
    /// skips because they are already made.
    pub(super) fn unkeyed(
        &self,
        change: impl FnOnce(&Context) -> Result<ChangeReport, Error>,
    ) -> Result<Value, Refusal> {
        result::changed(change(&Context { expected: None, key: None, ..self.context_again()? })?)
    }

    fn context_again(&self) -> Result<Context, Refusal> {
        let (by, now, kept) = (self.context.by.clone(), self.context.now, self.context.kept.clone());
        Ok(Context { by, now, kept, ..(self.contexts)()? })
    }
}

/// What a call does if there is no plans directory yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Without {
    /// It is refused, because it needs existing plans.
    Refuses,
    /// It returns an empty result.
    Looks,
    /// It creates the directory and its first entry.
    Makes,
}

/// The result of a call.
pub(super) enum Turn {
    Done(Value),
    /// A person is asked first; the action depends on the reply.
    Asks(Question),
}

/// A question that a person must confirm.
pub(super) struct Question {
    pub(super) message: String,
    /// The label of the check box.
    pub(super) yes: &'static str,
    /// The command that a person can type if the client cannot ask.
    pub(super) command: String,
    /// The subject of the question with its current state; a reply about another state is ignored.
    pub(super) about: String,
    pub(super) act: Act,
}

/// The action after a confirmation. The string is the person's note.
pub(super) type Act = Box<dyn FnOnce(&Call, Option<String>) -> Result<Value, Refusal> + Send + Sync>;

/// What a tool does. The first parameter is the tool's input schema.
type Run = Box<dyn Fn(&Object, &Call, Object) -> Result<Turn, Refusal> + Send + Sync>;

pub(super) struct Tool {
    pub(super) name: &'static str,
    title: &'static str,
    description: &'static str,
    pub(super) effect: Effect,
    input: Arc<Object>,
    output: &'static str,
    run: Run,
    /// What a call does without a plans directory: the same as the corresponding command.
    pub(super) without_plans: Box<dyn Fn(&Object) -> Without + Send + Sync>,
}

impl Tool {
    /// A tool without confirmation; `output` is in the notation of [`schema`].
    pub(super) fn new<A: DeserializeOwned + JsonSchema + 'static>(
        names: (&'static str, &'static str),
        effect: Effect,
        description: &'static str,
        output: &'static str,
        run: fn(&Call, A) -> Result<Value, Refusal>,
    ) -> Self {
        Self::asking(names, effect, description, output, move |call, asked| run(call, asked).map(Turn::Done))
    }

    /// A tool that may ask a person.
    pub(super) fn asking<A: DeserializeOwned + JsonSchema + 'static>(
        names: (&'static str, &'static str),
        effect: Effect,
        description: &'static str,
        output: &'static str,
        ask: impl Fn(&Call, A) -> Result<Turn, Refusal> + Send + Sync + 'static,
    ) -> Self {
        Self::with_input(names, (effect, description), schema::of_arguments::<A>(), output, ask)
    }

    /// A tool whose arguments are fields of the request type `R`. HTTP reads the same type. If there is no such type, `R` is
    /// `()`. `arguments` is in the notation of [`schema::arguments_of`]. `run` gets the arguments under the names of the
    /// fields.
    pub(super) fn of<R: JsonSchema>(
        names: (&'static str, &'static str),
        effect: Effect,
        description: &'static str,
        (arguments, output): (&'static str, &'static str),
        run: fn(&Call, Object) -> Result<Value, Refusal>,
    ) -> Self {
        let arguments = schema::arguments_of(arguments);
        let input = schema::of_request::<R>(&arguments);
        Self::with_input(names, (effect, description), input, output, move |call, mut given: Object| {
            let field = |it: &Argument| Some((it.field.to_owned(), given.remove(it.name)?));
            run(call, arguments.iter().filter_map(field).collect()).map(Turn::Done)
        })
    }

    fn with_input<A: DeserializeOwned + 'static>(
        (name, title): (&'static str, &'static str),
        (effect, description): (Effect, &'static str),
        input: Arc<Object>,
        output: &'static str,
        ask: impl Fn(&Call, A) -> Result<Turn, Refusal> + Send + Sync + 'static,
    ) -> Self {
        let run = Box::new(move |known: &Object, call: &Call, given| {
            let turn = schema::arguments(known, as_meant(known, &given)).and_then(|given| ask(call, given));
            with_kept(call, turn)
        });
        // Without a plans directory a reading tool returns an empty result.
        let without = if effect == Effect::Reads { Without::Looks } else { Without::Refuses };
        let without_plans = Box::new(move |_: &Object| without);
        Self { name, title, description, effect, input, output, run, without_plans }
    }

    /// Replaces what a call does without a plans directory. By default, the tool's effect decides.
    pub(super) fn without(self, plans: impl Fn(&Object) -> Without + Send + Sync + 'static) -> Self {
        Self { without_plans: Box::new(plans), ..self }
    }

    /// Adds a check of the arguments as they were sent, and a function that rewords refusals.
    pub(super) fn covered(
        self,
        check: fn(&Object) -> Result<(), Refusal>,
        reword: fn(Refusal) -> Refusal,
    ) -> Self {
        let run = self.run;
        let run = Box::new(move |known: &Object, call: &Call, given| {
            check(&given).and_then(|()| run(known, call, given)).map_err(reword)
        });
        Self { run, ..self }
    }

    /// Adds the argument `key`. A repeated call with the same key gets the answer of the first call and changes nothing.
    pub(super) fn keyed(self) -> Self {
        let Self { name, run, .. } = self;
        let mut input = (*self.input).clone();
        if let Some(Value::Object(properties)) = input.get_mut("properties") {
            // The server's instructions describe `key`, because the size of the tool list is limited.
            properties.insert("key".to_owned(), json!({"type": "string"}));
        }
        let run = Box::new(move |known: &Object, call: &Call, mut given: Object| match given.remove("key") {
            None | Some(Value::Null) => run(known, call, given),
            Some(Value::String(key)) if key.is_empty() => run(known, call, given),
            Some(Value::String(key)) => {
                once_for(&key, name, &|call, given| run(known, call, given), call, given)
            }
            Some(other) => {
                let why = format!("`key` has to be a text, and was given as {other}");
                Err(Refusal::usage(why, "use a new key for each call, and the same key to repeat a call"))
            }
        });
        Self { input: Arc::new(input), run, ..self }
    }

    /// Checks the arguments, and runs the tool.
    pub(super) fn run(&self, call: &Call, given: Object) -> Result<Turn, Refusal> {
        (self.run)(&self.input, call, given)
    }

    /// The entry of this tool in the answer to `tools/list`.
    pub(super) fn listed(&self) -> Listed {
        let effect = self.effect;
        let hints = ToolAnnotations::from_raw(
            None,
            Some(effect == Effect::Reads),
            Some(effect == Effect::Removes),
            Some(matches!(effect, Effect::Reads | Effect::Sets)),
            Some(false),
        );
        Listed::new(self.name, self.description, schema::common(&self.input))
            .with_title(self.title)
            .with_annotations(hints)
            .with_raw_output_schema(schema::of_result(self.output, effect != Effect::Reads))
    }
}

/// Runs a call, or returns the answer of an earlier call with the same key.
fn once_for(
    key: &str,
    name: &str,
    run: &dyn Fn(&Call, Object) -> Result<Turn, Refusal>,
    call: &Call,
    given: Object,
) -> Result<Turn, Refusal> {
    // The fields are sorted, because a repeated call can send them in another order.
    let fields: std::collections::BTreeMap<_, _> = given.iter().collect();
    let request = json!(["mcp", name, call.context.by, fields]).to_string();
    let (key, answer) = idempotency::begin_or_answer(&call.context, key, &request)?;
    if let Some(done) = answer.and_then(|it| serde_json::from_str(&it.body).ok()) {
        return Ok(Turn::Done(done));
    }
    let (contexts, person) = (Arc::clone(&call.contexts), call.person.clone());
    let (by, now, kept) = (call.context.by.clone(), call.context.now, call.context.kept.clone());
    let key = Arc::new(key);
    let context = Context { by, now, kept, key: Some(Arc::clone(&key)), ..contexts()? };
    let call = Call { context, contexts, person, renews: call.renews };
    // If the change is recorded, but no answer is stored, an earlier call made the change and ended before its answer was
    // stored.
    if let Some(report) = idempotency::repeated(&call.context, "change") {
        return Ok(Turn::Done(result::changed(report)?));
    }
    let turn = run(&call, given)?;
    if let Turn::Done(done) = &turn
        && !key.is_answer_dropped()
    {
        let answer = Answer { status: 200, headers: Vec::new(), body: done.to_string() };
        // If the answer cannot be stored, a repeated call still finds the record of the change and does not make it again.
        idempotency::keep(&call.context, &key.name, &key.request, answer).ok();
    }
    Ok(turn)
}

/// Adds to a call's result or refusal the saves that planwatch kept during the call.
fn with_kept(call: &Call, turn: Result<Turn, Refusal>) -> Result<Turn, Refusal> {
    match turn {
        Ok(Turn::Done(mut done)) => {
            call.context.kept.put_into(&mut done);
            Ok(Turn::Done(done))
        }
        turn => turn.map_err(|it| it.with_kept(&call.context.kept)),
    }
}

/// Renames arguments to the names that this tool uses, because prompts for other planning programs use `plan_id` and
/// `step_id`. Leaves out optional arguments that are an empty string, because clients send all fields of a form.
fn as_meant(schema: &Object, given: &Object) -> Object {
    const OTHERS: [(&str, &str); 4] =
        [("plan_id", "plan"), ("step_id", "step"), ("program_id", "program"), ("title", "plan")];
    let is_known = |name: &str| schema.get("properties").is_some_and(|it| it.get(name).is_some());
    let is_needed = |name: &str| {
        let required = schema.get("required").and_then(Value::as_array);
        required.into_iter().flatten().any(|it| it == name)
    };
    let own = |name: &str| {
        let (_, own) =
            OTHERS.iter().find(|(other, own)| *other == name && !is_known(other) && is_known(own))?;
        // `title` names the plan only if the tool requires a plan.
        (name != "title" || is_needed(own)).then_some(())?;
        (!given.contains_key(*own)).then_some(*own)
    };
    let renamed: Vec<_> = given.keys().map(|it| own(it).unwrap_or(it).to_owned()).collect();
    let meant = renamed.into_iter().zip(given.values().cloned());
    meant.filter(|(name, value)| *value != "" || is_needed(name)).collect()
}
