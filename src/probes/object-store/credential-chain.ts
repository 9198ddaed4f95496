// The only file that imports the AWS SDK. It is loaded when credentials are first needed. The import in it is static, because the
// bundler resolves the names of a CommonJS package only in a static import.
export { defaultProvider } from '@aws-sdk/credential-provider-node';
