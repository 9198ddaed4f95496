// The only file that imports the AWS SDK, loaded when credentials are first needed. The import is static, because the
// bundler resolves the names of a CommonJS package in a static import only.
export { defaultProvider } from '@aws-sdk/credential-provider-node';
