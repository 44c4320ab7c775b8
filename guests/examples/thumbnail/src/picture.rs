//! Pictures: decoding within limits, scaling, encoding.

use std::io::Cursor;

use image::codecs::jpeg::{JpegDecoder, JpegEncoder};
use image::codecs::png::PngDecoder;
use image::error::LimitErrorKind;
use image::{DynamicImage, ImageDecoder, ImageError, ImageFormat, ImageResult, Limits};
use sandkeep_sdk::TaskError;

/// The most pixels of a picture. With four bytes for each, twice while it is turned, this fits the memory of a module.
pub const PIXELS_MAX: u64 = 6_000_000;
/// What decoding may allocate, in bytes.
const DECODE_BYTES_MAX: u64 = 32 * 1024 * 1024;
const JPEG_QUALITY: u8 = 82;

/// The kinds of files that are read and written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Lossless, with transparency.
    Png,
    /// Photographs.
    Jpeg,
}

/// A decoded picture that knows what kind of file it came from.
#[derive(Debug)]
pub struct Picture {
    /// What it is written as.
    pub kind: Kind,
    pixels: DynamicImage,
}

/// Decodes a PNG or JPEG, turned the way it is to be shown.
///
/// # Errors
///
/// `UNSUPPORTED_FORMAT`, `IMAGE_TOO_LARGE` before anything of its size is allocated, `INVALID_IMAGE`.
pub fn decode(bytes: &[u8]) -> Result<Picture, TaskError> {
    let cursor = Cursor::new(bytes);
    let (kind, pixels) = match image::guess_format(bytes) {
        Ok(ImageFormat::Png) => (Kind::Png, pixels(PngDecoder::new(cursor))),
        Ok(ImageFormat::Jpeg) => (Kind::Jpeg, pixels(JpegDecoder::new(cursor))),
        _ => return Err(TaskError::permanent("UNSUPPORTED_FORMAT", "the picture is neither a PNG nor a JPEG")),
    };
    Ok(Picture { kind, pixels: pixels? })
}

fn pixels<D: ImageDecoder>(decoder: ImageResult<D>) -> Result<DynamicImage, TaskError> {
    let mut decoder = decoder.map_err(|error| refusal(&error))?;
    let (width, height) = decoder.dimensions();
    if u64::from(width) * u64::from(height) > PIXELS_MAX {
        let details = [("width", u64::from(width)), ("height", u64::from(height)), ("pixels_max", PIXELS_MAX)];
        let details: std::collections::BTreeMap<_, _> = details.into();
        let message = format!("a picture of {width} by {height} has more than {PIXELS_MAX} pixels");
        return Err(TaskError::permanent("IMAGE_TOO_LARGE", message).with_details(details));
    }
    let mut limits = Limits::no_limits();
    limits.max_alloc = Some(DECODE_BYTES_MAX);
    decoder.set_limits(limits).map_err(|error| refusal(&error))?;
    // A picture that does not say how it is to be turned is not turned.
    let orientation = decoder.orientation().ok();
    let mut pixels = DynamicImage::from_decoder(decoder).map_err(|error| refusal(&error))?;
    if let Some(orientation) = orientation {
        pixels.apply_orientation(orientation);
    }
    Ok(pixels)
}

fn refusal(error: &ImageError) -> TaskError {
    match error {
        ImageError::Limits(limit) if !matches!(limit.kind(), LimitErrorKind::Unsupported { .. }) => {
            TaskError::permanent("IMAGE_TOO_LARGE", format!("the picture takes too much memory: {error}"))
        }
        _ => TaskError::permanent("INVALID_IMAGE", format!("the picture cannot be read: {error}")),
    }
}

impl Picture {
    /// Returns its width in pixels.
    pub fn width(&self) -> u32 {
        self.pixels.width()
    }

    /// Returns its height in pixels.
    pub fn height(&self) -> u32 {
        self.pixels.height()
    }

    /// Returns it scaled down until neither edge is longer than `edge_max`; as it is where none is.
    pub fn within(&self, edge_max: u32) -> Self {
        let fits = self.width() <= edge_max && self.height() <= edge_max;
        let pixels = if fits { self.pixels.clone() } else { self.pixels.thumbnail(edge_max, edge_max) };
        Self { kind: self.kind, pixels }
    }

    /// Writes it as a file of its kind.
    ///
    /// # Errors
    ///
    /// `INVALID_IMAGE` where its pixels have no such form.
    pub fn encode(&self) -> Result<Vec<u8>, TaskError> {
        let mut file = Cursor::new(Vec::new());
        let written = match self.kind {
            Kind::Png => self.pixels.write_to(&mut file, ImageFormat::Png),
            // A JPEG has eight bits a channel and no transparency.
            Kind::Jpeg => {
                self.pixels.to_rgb8().write_with_encoder(JpegEncoder::new_with_quality(&mut file, JPEG_QUALITY))
            }
        };
        written.map_err(|error| refusal(&error))?;
        Ok(file.into_inner())
    }
}
