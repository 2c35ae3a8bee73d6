//! The attribute `#[wire]`, with which chorus-proto declares its wire types.

use proc_macro::TokenStream;
use quote::{ToTokens, quote};
use syn::punctuated::Punctuated;
use syn::{Attribute, Data, DeriveInput, Field, Ident, Token, Type, parse_macro_input, parse_quote};

/// Declares a type that travels as JSON. It derives `Debug`, `Clone`, `Serialize` and `Deserialize`, the JSON Schema with
/// the feature `schema`, and the traits named as arguments.
///
/// - A field with `#[omit_empty]` is left out of the JSON if it is `None`, empty or false, and may be missing in it.
/// - `#[wire(params)]` declares the parameters of a method: `Default` is derived, unknown fields are refused, and every
///   `Option`, `Vec` and `bool` is as with `#[omit_empty]`, unless `#[required]` or serde's `default` is on it.
/// - The variants of an enum are in snake_case, unless a serde attribute is on the enum.
#[proc_macro_attribute]
pub fn wire(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let arguments = parse_macro_input!(arguments with Punctuated::<Ident, Token![,]>::parse_terminated);
    let mut item = parse_macro_input!(item as DeriveInput);
    let (params, mut derives): (Vec<Ident>, Vec<Ident>) = arguments.into_iter().partition(|name| name == "params");
    let is_params = !params.is_empty();
    if is_params {
        derives.push(parse_quote!(Default));
        item.attrs.push(parse_quote!(#[serde(deny_unknown_fields)]));
    }
    if matches!(item.data, Data::Enum(_)) && !item.attrs.iter().any(is_serde) {
        item.attrs.push(parse_quote!(#[serde(rename_all = "snake_case")]));
    }
    if let Err(error) = fields_mut(&mut item.data).try_for_each(|field| add_omission(field, is_params)) {
        return error.into_compile_error().into();
    }
    quote! {
        #[derive(Debug, Clone, #(#derives,)* ::serde::Serialize, ::serde::Deserialize)]
        #[cfg_attr(feature = "schema", derive(::schemars::JsonSchema))]
        #item
    }
    .into()
}

fn is_serde(attribute: &Attribute) -> bool {
    attribute.path().is_ident("serde")
}

/// The fields of a struct, or of all variants of an enum.
fn fields_mut(data: &mut Data) -> Box<dyn Iterator<Item = &mut Field> + '_> {
    match data {
        Data::Struct(data) => Box::new(data.fields.iter_mut()),
        Data::Enum(data) => Box::new(data.variants.iter_mut().flat_map(|variant| variant.fields.iter_mut())),
        Data::Union(_) => Box::new(std::iter::empty()),
    }
}

/// Removes the attribute `name` from the field; returns whether it was there.
fn take_marker(field: &mut Field, name: &str) -> bool {
    let before = field.attrs.len();
    field.attrs.retain(|attribute| !attribute.path().is_ident(name));
    field.attrs.len() < before
}

/// Replaces `#[omit_empty]` by serde's attribute; with `is_params`, adds it to every field whose type can be empty.
fn add_omission(field: &mut Field, is_params: bool) -> syn::Result<()> {
    let marked = take_marker(field, "omit_empty");
    let required = take_marker(field, "required");
    let has_default = field
        .attrs
        .iter()
        .any(|attribute| is_serde(attribute) && attribute.to_token_stream().to_string().contains("default"));
    if !marked && (!is_params || required || has_default) {
        return Ok(());
    }
    let Some(is_empty) = emptiness_check(&field.ty) else {
        return if marked { Err(syn::Error::new_spanned(&field.ty, "no Option, Vec or bool")) } else { Ok(()) };
    };
    field.attrs.push(parse_quote!(#[serde(default, skip_serializing_if = #is_empty)]));
    Ok(())
}

/// The path of the function that tells whether a value of this type is empty.
fn emptiness_check(ty: &Type) -> Option<&'static str> {
    let Type::Path(path) = ty else { return None };
    match path.path.segments.last()?.ident.to_string().as_str() {
        "Option" => Some("Option::is_none"),
        "Vec" => Some("Vec::is_empty"),
        "bool" => Some("std::ops::Not::not"),
        _ => None,
    }
}
