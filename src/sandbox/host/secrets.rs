//! `sandkeep:task/secrets`: this server keeps no secrets yet, and says so.

use wasmtime::component::Resource;

use super::{super::bindings::secrets, Host};

const NO_SECRETS: &str = "this server keeps no secrets yet: pass the value in the task's input";

/// A secret. None can be made, so none can be revealed.
pub enum Secret {}

impl secrets::Host for Host<'_> {
    fn get(&mut self, _name: String) -> Result<Resource<Secret>, String> {
        Err(NO_SECRETS.to_owned())
    }
}

impl secrets::HostSecret for Host<'_> {
    fn reveal(&mut self, _secret: Resource<Secret>) -> Result<String, String> {
        Err(NO_SECRETS.to_owned())
    }

    fn drop(&mut self, _secret: Resource<Secret>) -> wasmtime::Result<()> {
        Ok(())
    }
}
