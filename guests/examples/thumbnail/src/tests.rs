//! The task as a workflow sees it: JSON in, JSON or a typed error out.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use image::{DynamicImage, ImageFormat, Rgb, RgbImage};
use sandkeep_sdk::run;
use std::io::Cursor;

use crate::TASKS;
use crate::picture;

fn file(width: u32, height: u32, format: ImageFormat) -> Vec<u8> {
    let pixel = |x: u32, y: u32| Rgb([(x % 256) as u8, (y % 256) as u8, 128]);
    let mut file = Cursor::new(Vec::new());
    DynamicImage::from(RgbImage::from_fn(width, height, pixel)).write_to(&mut file, format).expect("it is written");
    file.into_inner()
}

fn call(bytes: &[u8], edge_max: u32) -> Result<String, String> {
    let input = format!(r#"{{"image_base64":"{}","edge_max":{edge_max}}}"#, BASE64.encode(bytes));
    run(TASKS, "image.thumbnail", &input).map_err(|error| error.code)
}

#[track_caller]
fn check(format: ImageFormat, (width, height): (u32, u32), edge_max: u32, small: (u32, u32)) {
    let answer = call(&file(width, height, format), edge_max).expect("it is a picture");
    let media_type = format.to_mime_type();
    for part in [
        format!("\"media_type\":\"{media_type}\""),
        format!("\"width\":{},\"height\":{}", small.0, small.1),
        format!("\"original_width\":{width},\"original_height\":{height}"),
    ] {
        assert!(answer.contains(&part), "{part} is not in {answer}");
    }
    let encoded = answer.split('"').nth(3).expect("it begins with the picture");
    let picture = picture::decode(&BASE64.decode(encoded).expect("base64")).expect("a picture");
    assert_eq!((picture.width(), picture.height()), small);
}

#[test]
fn pictures_shrink_and_keep_their_shape() {
    check(ImageFormat::Png, (640, 480), 64, (64, 48));
    check(ImageFormat::Jpeg, (480, 640), 64, (48, 64));
    check(ImageFormat::Png, (1_000, 1), 10, (10, 1));
}

#[test]
fn small_pictures_stay_as_they_are() {
    check(ImageFormat::Png, (20, 10), 64, (20, 10));
}

#[test]
fn bad_pictures_are_typed_errors() {
    let png = file(64, 64, ImageFormat::Png);
    let jpeg = file(64, 64, ImageFormat::Jpeg);
    let refused = |bytes: &[u8]| call(bytes, 8).err();
    assert_eq!(refused(b"GIF89a").as_deref(), Some("UNSUPPORTED_FORMAT"));
    assert_eq!(refused(b"").as_deref(), Some("UNSUPPORTED_FORMAT"));
    assert_eq!(refused(&png[..png.len() / 2]).as_deref(), Some("INVALID_IMAGE"));
    assert_eq!(refused(&jpeg[..20]).as_deref(), Some("INVALID_IMAGE"));
    assert_eq!(call(&png, 0), Err("INVALID_EDGE".to_owned()));
    assert_eq!(call(&png, 100_000), Err("INVALID_EDGE".to_owned()));
    let no_base64 = run(TASKS, "image.thumbnail", r#"{"image_base64":"%"}"#).map_err(|error| error.code);
    assert_eq!(no_base64, Err("INVALID_BASE64".to_owned()));
}

/// A few hundred bytes that say they are a picture of gigabytes.
#[test]
fn bombs_are_refused_by_their_size() {
    let mut png = file(1, 1, ImageFormat::Png);
    let edge = 50_000_u32.to_be_bytes();
    png[16..20].copy_from_slice(&edge);
    png[20..24].copy_from_slice(&edge);
    let sum = crc(&png[12..29]).to_be_bytes();
    png[29..33].copy_from_slice(&sum);
    assert_eq!(call(&png, 8), Err("IMAGE_TOO_LARGE".to_owned()));
}

/// The sum that ends a chunk of a PNG.
fn crc(bytes: &[u8]) -> u32 {
    let step = |crc: u32, _| if crc & 1 == 1 { (crc >> 1) ^ 0xedb8_8320 } else { crc >> 1 };
    !bytes.iter().fold(!0, |crc, &byte| (0..8).fold(crc ^ u32::from(byte), step))
}
