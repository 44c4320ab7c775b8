//! Makes small pictures of large ones: PNG or JPEG in, the same kind out, as base64.
//!
//! - [`task`]: the task, its input and its output.
//! - [`picture`]: decoding within limits, scaling, encoding.
//!
//! The library that decodes has never seen the pictures before and nobody vouched for them. What it does with them it
//! does in the sandbox: a crash is one failed attempt, and the limits here turn what is too large into a typed error.

pub mod picture;
pub mod task;

sandkeep_sdk::tasks! {
    /// Scales a PNG or JPEG down until neither edge is longer than `edge_max`.
    "image.thumbnail" "1.0.0" => task::thumbnail,
}

#[cfg(test)]
mod tests;
