//! The error response to a request that the library cannot read. Either the server does not have the method, or `params` does
//! not fit the method. The library treats both cases alike.

use rmcp::ErrorData;
use rmcp::model::{
    CallToolRequestMethod, CompleteRequestMethod, ConstString, CustomRequest, ErrorCode,
    GetPromptRequestMethod, InitializeResultMethod, ReadResourceRequestMethod, SubscribeRequestMethod,
    SubscriptionsListenRequestMethod, UnsubscribeRequestMethod,
};

/// The methods with required parameters.
const METHODS: [&str; 8] = [
    InitializeResultMethod::VALUE,
    CallToolRequestMethod::VALUE,
    CompleteRequestMethod::VALUE,
    GetPromptRequestMethod::VALUE,
    ReadResourceRequestMethod::VALUE,
    SubscribeRequestMethod::VALUE,
    UnsubscribeRequestMethod::VALUE,
    SubscriptionsListenRequestMethod::VALUE,
];

pub(super) fn error(request: CustomRequest) -> ErrorData {
    if METHODS.contains(&request.method.as_str()) {
        return ErrorData::invalid_params(
            format!("the parameters of {} are not valid", request.method),
            None,
        );
    }
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, request.method, None)
}
