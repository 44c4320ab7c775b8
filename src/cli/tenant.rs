//! `tenant`: makes and shows tenants.

use clap::Subcommand;

use crate::{
    app::view::{CreateTenantRequest, TenantView},
    model::Timestamp,
};

use super::{
    Error,
    client::{Body, Server, To},
    listing::Listing,
    output::{Output, Table},
    setting::Setting,
};

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    Create(Create),
    List(List),
    Show(Show),
    Policy(Policy),
}

/// Makes a tenant; the same again is no error
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: sandkeep tenant create acme --display-name 'Acme Inc.'")]
pub(super) struct Create {
    /// Its name
    name: String,
    /// Its name for people
    #[arg(long)]
    display_name: Option<String>,
    #[command(flatten)]
    server: Server,
    #[command(flatten)]
    output: Output,
}

/// Lists the tenants
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: sandkeep tenant list")]
pub(super) struct List {
    #[command(flatten)]
    listing: Listing,
}

/// Shows a tenant
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: sandkeep tenant show acme")]
pub(super) struct Show {
    /// The tenant
    name: String,
    #[command(flatten)]
    server: Server,
    #[command(flatten)]
    output: Output,
}

/// Shows what a tenant may use and reach, or sets it
///
/// A half that is not given stays: `granted` is the operator's, `own` is the owner's and only ever narrower.
#[derive(Debug, clap::Args)]
#[command(
    after_help = r#"Example: sandkeep tenant policy acme --set '{"granted": {"egress": ["https://api.example.com"]}}'"#
)]
pub(super) struct Policy {
    /// The tenant
    name: String,
    #[command(flatten)]
    setting: Setting,
}

const HEADINGS: [&str; 3] = ["TENANT", "CREATED", "DISPLAY NAME"];

fn cells(tenant: &TenantView) -> Vec<String> {
    let created = Timestamp(tenant.created_at_ms).to_string();
    vec![tenant.tenant.clone(), created, tenant.display_name.clone().unwrap_or_default()]
}

pub(super) async fn run(command: Command) -> Result<(), Error> {
    match command {
        Command::Create(args) => create(args).await,
        Command::List(List { listing }) => listing.show(&To::path(&["tenants"]), "tenants", &HEADINGS, cells).await,
        Command::Show(Show { name, server, output }) => {
            let client = server.client()?;
            let answer = client.get(&To::path(&["tenants", &name])).await?;
            output.value(&answer, || Ok(table(&client.read(&answer)?)))
        }
        Command::Policy(args) => policy(args).await,
    }
}

async fn policy(args: Policy) -> Result<(), Error> {
    args.setting.show_or_set(&To::path(&["tenants", &args.name, "policy"])).await
}

async fn create(args: Create) -> Result<(), Error> {
    let Create { name: tenant, display_name, server, output } = args;
    let client = server.client()?;
    let request = serde_json::to_string(&CreateTenantRequest { tenant, display_name }).expect("texts are JSON");
    let answer = client.post(&To::path(&["tenants"]), Body::Json(request), None).await?;
    output.value(&answer, || Ok(table(&client.read(&answer)?)))
}

fn table(tenant: &TenantView) -> String {
    let mut table = Table::new(&HEADINGS);
    table.row(cells(tenant));
    table.to_text()
}
