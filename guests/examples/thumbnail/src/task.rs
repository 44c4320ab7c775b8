//! The task: base64 in, base64 out.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use sandkeep_sdk::{TaskError, log};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::picture::{self, Kind, Picture};

/// The longest edge that can be asked for, in pixels.
pub const EDGE_MAX: u32 = 1_024;

/// A picture, and how small it shall be.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Original {
    /// The file, a PNG or JPEG, as base64.
    image_base64: String,
    /// The longest edge of the thumbnail, in pixels.
    #[serde(default = "edge_default")]
    #[schemars(range(min = 1, max = 1024))]
    edge_max: u32,
}

/// A small picture.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Thumbnail {
    /// The file as base64.
    image_base64: String,
    /// Its media type.
    media_type: &'static str,
    /// Its width in pixels.
    width: u32,
    /// Its height in pixels.
    height: u32,
    /// The original's width in pixels, as it is to be shown.
    original_width: u32,
    /// The original's height in pixels, as it is to be shown.
    original_height: u32,
}

fn edge_default() -> u32 {
    256
}

/// Scales a picture down.
pub fn thumbnail(original: Original) -> Result<Thumbnail, TaskError> {
    let Original { image_base64, edge_max } = original;
    if !(1..=EDGE_MAX).contains(&edge_max) {
        let message = format!("an edge of {edge_max} pixels is not between 1 and {EDGE_MAX}");
        return Err(TaskError::permanent("INVALID_EDGE", message));
    }
    let bytes = BASE64
        .decode(image_base64.trim())
        .map_err(|error| TaskError::permanent("INVALID_BASE64", format!("the picture is no base64: {error}")))?;
    let picture = picture::decode(&bytes)?;
    let small = picture.within(edge_max);
    let encoded = small.encode()?;
    log::info(&format!(
        "{}x{} became {}x{}, {} bytes became {}",
        picture.width(),
        picture.height(),
        small.width(),
        small.height(),
        bytes.len(),
        encoded.len()
    ));
    Ok(answer(&picture, &small, &encoded))
}

fn answer(original: &Picture, small: &Picture, encoded: &[u8]) -> Thumbnail {
    Thumbnail {
        image_base64: BASE64.encode(encoded),
        media_type: match small.kind {
            Kind::Png => "image/png",
            Kind::Jpeg => "image/jpeg",
        },
        width: small.width(),
        height: small.height(),
        original_width: original.width(),
        original_height: original.height(),
    }
}
