//! The error response to a request that the library cannot read. Either the server does not have the method, or `params` does
//! not fit the method. The library treats both cases alike.

use rmcp::ErrorData;
use rmcp::model::{
    CallToolRequestMethod, CallToolRequestParams, CompleteRequestMethod, CompleteRequestParams, ConstString,
    CustomRequest, ErrorCode, GetPromptRequestMethod, GetPromptRequestParams, InitializeRequestParams,
    InitializeResultMethod, ReadResourceRequestMethod, ReadResourceRequestParams, SubscribeRequestMethod,
    SubscribeRequestParams, SubscriptionsListenRequestMethod, SubscriptionsListenRequestParams,
    UnsubscribeRequestMethod, UnsubscribeRequestParams,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Tells what is wrong with parameters.
type Judge = fn(Value) -> Option<String>;

/// The methods with required parameters.
const METHODS: [(&str, Judge); 8] = [
    (InitializeResultMethod::VALUE, wrong::<InitializeRequestParams>),
    (CallToolRequestMethod::VALUE, wrong::<CallToolRequestParams>),
    (CompleteRequestMethod::VALUE, wrong::<CompleteRequestParams>),
    (GetPromptRequestMethod::VALUE, wrong::<GetPromptRequestParams>),
    (ReadResourceRequestMethod::VALUE, wrong::<ReadResourceRequestParams>),
    (SubscribeRequestMethod::VALUE, wrong::<SubscribeRequestParams>),
    (UnsubscribeRequestMethod::VALUE, wrong::<UnsubscribeRequestParams>),
    (SubscriptionsListenRequestMethod::VALUE, wrong::<SubscriptionsListenRequestParams>),
];

pub(super) fn error(request: CustomRequest) -> ErrorData {
    let Some((method, wrong)) = METHODS.iter().find(|it| it.0 == request.method) else {
        return ErrorData::new(ErrorCode::METHOD_NOT_FOUND, request.method, None);
    };
    // Without parameters, the first required one is reported as missing.
    let params = request.params.unwrap_or_else(|| json!({}));
    let why = wrong(params).map(|it| format!(": {it}")).unwrap_or_default();
    ErrorData::invalid_params(format!("the parameters of {method} are not valid{why}"), None)
}

fn wrong<T: DeserializeOwned>(params: Value) -> Option<String> {
    serde_json::from_value::<T>(params).err().map(|it| it.to_string())
}
